package dev.timebound.samples.kafka;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.samples.kafka.log.Appended;
import dev.timebound.samples.kafka.log.ProducedBatch;
import dev.timebound.samples.kafka.log.TopicLog;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.ProduceRequestData.PartitionProduceData;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceData;
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

/**
 * Produce: one batch for each partition, written at the same time, each within the request's time.
 * Errors are each partition's own: nobody sends again what is written because of another.
 */
final class ProduceHandler implements Apis.Handler {
  private static final Logger LOG = LoggerFactory.getLogger(ProduceHandler.class);

  /** Of a request: each may hold a connection of the log's. */
  private static final int AT_ONCE = 32;

  private static final Duration MARGIN = Duration.ofSeconds(5);

  private static final short NONE = 0;
  private static final short LEADER = 1;
  private static final short ALL = -1;

  private final TopicLog log;
  private final GatewaySettings settings;
  private final ProduceStalls stalls = new ProduceStalls();

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
    Deadline deadline = Deadline.after(time(call, request));
    Mono<ProduceResponseData> written =
        Flux.fromIterable(request.topicData())
            .flatMapIterable(topic -> parts(topic))
            .flatMapSequential(part -> written(call, part, deadline), AT_ONCE, 1)
            .collectList()
            .map(answers -> answer(request, answers.iterator()));
    return acks == NONE
        ? written.flatMap(ProduceHandler::unanswered)
        : written.cast(ApiMessage.class);
  }

  /**
   * Less than the client says: a Java client names the very time after which it hangs up, and what
   * was written would go unacknowledged, and be sent again. Nothing where it waited that long for
   * those before it: then nothing is written.
   */
  private Duration time(Call call, ProduceRequestData request) {
    Duration time =
        request.timeoutMs() > 0 ? Duration.ofMillis(request.timeoutMs()) : settings.requestTime();
    Duration margin = time.dividedBy(4);
    Duration left = time.minus(margin.compareTo(MARGIN) < 0 ? margin : MARGIN).minus(call.age());
    return left.isNegative() ? Duration.ZERO : left;
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

  /** A partition's part of a request. */
  private record Part(String topic, PartitionProduceData data) {}

  private static List<Part> parts(TopicProduceData topic) {
    return topic.partitionData().stream().map(data -> new Part(topic.name(), data)).toList();
  }

  /**
   * @param answers in the order of the request
   */
  private static ProduceResponseData answer(
      ProduceRequestData request, Iterator<PartitionProduceResponse> answers) {
    TopicProduceResponseCollection topics = new TopicProduceResponseCollection();
    for (TopicProduceData topic : request.topicData()) {
      TopicProduceResponse answer = new TopicProduceResponse().setName(topic.name());
      topic.partitionData().forEach(part -> answer.partitionResponses().add(answers.next()));
      topics.add(answer);
    }
    return new ProduceResponseData().setResponses(topics);
  }

  private Mono<PartitionProduceResponse> written(Call call, Part part, Deadline deadline) {
    PartitionProduceData data = part.data();
    if (!Names.isPartition(part.topic(), data.index())) {
      return Mono.just(refused(data.index(), Errors.UNKNOWN_TOPIC_OR_PARTITION, null));
    }
    TopicPartition partition = new TopicPartition(part.topic(), data.index());
    ProducedBatch batch;
    try {
      batch = KafkaRecords.produced(data, call.version(), settings.maxBatchBytes());
    } catch (ApiException e) {
      LOG.warn("Refused a batch of {} for {}: {}", call.clientId(), partition, e.toString());
      return Mono.just(refused(data.index(), Errors.forException(e), e.getMessage()));
    }
    boolean heldBack = stalls.isHeldBack(partition);
    return log.append(partition, batch)
        .transform(
            Deadlines.of(heldBack ? deadline.within(ProduceStalls.TRIED) : deadline, "produce"))
        .doOnNext(any -> stalls.answered(partition))
        .doOnError(
            error -> error instanceof DeadlineExceededException && !heldBack,
            error -> stalls.stalled(partition))
        .map(appended -> answer(data.index(), appended))
        .onErrorResume(error -> Mono.just(failed(call, partition, error)));
  }

  private static PartitionProduceResponse failed(
      Call call, TopicPartition partition, Throwable error) {
    if (error instanceof DeadlineExceededException) {
      LOG.warn("A batch of {} for {}: {}", call.clientId(), partition, error.getMessage());
    } else {
      LOG.warn("A batch of {} for {} failed", call.clientId(), partition, error);
    }
    Throwable told = ClientConnection.forClient(error);
    return refused(partition.partition(), Errors.forException(told), told.getMessage());
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
      case NO_ROOM -> refused(partition, Errors.KAFKA_STORAGE_ERROR, "the log is full");
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
