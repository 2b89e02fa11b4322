package dev.timebound.samples.kafka;

import dev.timebound.deadline.Deadlines;
import dev.timebound.samples.kafka.log.TopicLog;
import java.time.Duration;
import org.apache.kafka.common.message.InitProducerIdRequestData;
import org.apache.kafka.common.message.InitProducerIdResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import reactor.core.publisher.Mono;

/**
 * InitProducerId: ids for idempotent producers. One that lost track of its sequence numbers, and
 * asks for the next epoch of its id, is given a new id: nothing that it had written is at stake, as
 * no other instance of it goes on under the old one.
 */
final class ProducerIdHandler implements Apis.Handler {
  private final TopicLog log;
  private final Duration time;

  ProducerIdHandler(TopicLog log, Duration time) {
    this.log = log;
    this.time = time;
  }

  @Override
  public Mono<ApiMessage> apply(Call call, ApiMessage body) {
    InitProducerIdRequestData request = (InitProducerIdRequestData) body;
    if (request.transactionalId() != null) {
      return Mono.error(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.exception());
    }
    return log.newProducerId()
        .<ApiMessage>map(
            id -> new InitProducerIdResponseData().setProducerId(id).setProducerEpoch((short) 0))
        .transform(Deadlines.within(time));
  }
}
