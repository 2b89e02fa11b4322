package dev.timebound.samples.kafka;

import dev.timebound.deadline.Deadlines;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.samples.kafka.log.Appended;
import dev.timebound.samples.kafka.log.ProducedBatch;
import dev.timebound.samples.kafka.log.TopicLog;
import java.time.Duration;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.ProduceRequestData.PartitionProduceData;
import org.apache.kafka.common.message.ProduceResponseData;
import org.apache.kafka.common.message.ProduceResponseData.PartitionProduceResponse;
import org.apache.kafka.common.message.ProduceResponseData.TopicProduceResponse;
import org.apache.kafka.common.message.ProduceResponseData.TopicProduceResponseCollection;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Produce: the batches of a request are written in its order, one after the other. */
final class ProduceHandler implements Apis.Handler {
  private static final Logger LOG = LoggerFactory.getLogger(ProduceHandler.class);
  private static final short NONE = 0;
  private static final short LEADER = 1;
  private static final short ALL = -1;

  private final TopicLog log;
  private final GatewaySettings settings;

  ProduceHandler(TopicLog log, GatewaySettings settings) {
    this.log = log;
    this.settings = settings;
  }

  @Override
  public Mono<ApiMessage> apply(Call call, ApiMessage body) {
    ProduceRequestData request = (ProduceRequestData) body;
    short acks = request.acks();
    if (acks != NONE && acks != LEADER && acks != ALL) {
      return Mono.error(Errors.INVALID_REQUIRED_ACKS.exception());
    }
    if (request.transactionalId() != null) {
      return Mono.error(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.exception());
    }
    Mono<ProduceResponseData> written =
        Flux.fromIterable(request.topicData())
            .concatMap(topic -> topic(call, topic))
            .collect(TopicProduceResponseCollection::new, TopicProduceResponseCollection::add)
            .map(topics -> new ProduceResponseData().setResponses(topics))
            .transform(Deadlines.within(time(request)));
    return acks == NONE
        ? written.flatMap(ProduceHandler::unanswered)
        : written.cast(ApiMessage.class);
  }

  private Duration time(ProduceRequestData request) {
    return request.timeoutMs() > 0
        ? Duration.ofMillis(request.timeoutMs())
        : settings.requestTime();
  }

  /** A client that wants no answer learns of an error by the end of its connection alone. */
  private static Mono<ApiMessage> unanswered(ProduceResponseData answer) {
    boolean failed =
        answer.responses().stream()
            .flatMap(topic -> topic.partitionResponses().stream())
            .anyMatch(partition -> partition.errorCode() != Errors.NONE.code());
    return failed
        ? Mono.error(new ConnectionEndedException("an unanswered Produce failed"))
        : Mono.empty();
  }

  private Mono<TopicProduceResponse> topic(Call call, ProduceRequestData.TopicProduceData topic) {
    return Flux.fromIterable(topic.partitionData())
        .concatMap(partition -> partition(call, topic.name(), partition))
        .collectList()
        .map(
            partitions ->
                new TopicProduceResponse().setName(topic.name()).setPartitionResponses(partitions));
  }

  private Mono<PartitionProduceResponse> partition(
      Call call, String topic, PartitionProduceData data) {
    if (!Names.isPartition(topic, data.index())) {
      return Mono.just(refused(data.index(), Errors.UNKNOWN_TOPIC_OR_PARTITION, null));
    }
    TopicPartition partition = new TopicPartition(topic, data.index());
    ProducedBatch batch;
    try {
      batch = KafkaRecords.produced(data, call.version(), settings.maxBatchBytes());
    } catch (ApiException e) {
      LOG.warn("Refused a batch of {} for {}: {}", call.clientId(), partition, e.toString());
      return Mono.just(refused(data.index(), Errors.forException(e), e.getMessage()));
    }
    return log.append(partition, batch).map(appended -> answer(data.index(), appended));
  }

  private static PartitionProduceResponse answer(int partition, Appended appended) {
    return switch (appended.outcome()) {
      case WRITTEN, DUPLICATE ->
          new PartitionProduceResponse()
              .setIndex(partition)
              .setBaseOffset(appended.baseOffset())
              .setLogAppendTimeMs(-1)
              .setLogStartOffset(-1);
      case OUT_OF_ORDER -> refused(partition, Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, null);
      case FENCED -> refused(partition, Errors.INVALID_PRODUCER_EPOCH, null);
      case UNKNOWN_PARTITION -> refused(partition, Errors.UNKNOWN_TOPIC_OR_PARTITION, null);
    };
  }

  private static PartitionProduceResponse refused(
      int partition, Errors error, @Nullable String message) {
    return new PartitionProduceResponse()
        .setIndex(partition)
        .setErrorCode(error.code())
        .setBaseOffset(-1)
        .setLogAppendTimeMs(-1)
        .setLogStartOffset(-1)
        .setErrorMessage(message);
  }
}
