package dev.timebound.samples.kafka;

import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.PartitionData;
import dev.timebound.fetch.TopicPartition;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.FetchMetadata;
import reactor.core.publisher.Mono;

/** Fetch, without sessions: each request names all of its partitions. */
final class FetchHandler implements Apis.Handler {
  private final int maxBytes;

  FetchHandler(int maxBytes) {
    this.maxBytes = maxBytes;
  }

  @Override
  public Mono<ApiMessage> apply(Call call, ApiMessage body) {
    FetchRequestData request = (FetchRequestData) body;
    if (request.sessionId() != FetchMetadata.INVALID_SESSION_ID) {
      return Mono.just(refused(Errors.FETCH_SESSION_ID_NOT_FOUND));
    }
    if (request.sessionEpoch() != FetchMetadata.INITIAL_EPOCH
        && request.sessionEpoch() != FetchMetadata.FINAL_EPOCH) {
      return Mono.just(refused(Errors.INVALID_FETCH_SESSION_EPOCH));
    }
    Map<TopicPartition, FetchRequest.Partition> wanted = wanted(request);
    if (wanted.isEmpty()) {
      return Mono.just(answer(request, Map.of()));
    }
    FetchRequest fetch =
        new FetchRequest(
            Duration.ofMillis(Math.max(0, request.maxWaitMs())),
            Math.max(0, request.minBytes()),
            Math.min(maxBytes, Math.max(0, request.maxBytes())),
            request.isolationLevel() == 1 ? Isolation.READ_COMMITTED : Isolation.READ_UNCOMMITTED,
            List.copyOf(wanted.values()));
    return call.session()
        .fetches()
        .apply(fetch)
        .map(response -> answer(request, byPartition(response)));
  }

  private static FetchResponseData refused(Errors error) {
    return new FetchResponseData().setErrorCode(error.code());
  }

  /** Each once; of one that is named twice the last counts. */
  private static Map<TopicPartition, FetchRequest.Partition> wanted(FetchRequestData request) {
    Map<TopicPartition, FetchRequest.Partition> wanted = new LinkedHashMap<>();
    for (FetchRequestData.FetchTopic topic : request.topics()) {
      for (FetchRequestData.FetchPartition partition : topic.partitions()) {
        if (Names.isPartition(topic.topic(), partition.partition())) {
          TopicPartition id = new TopicPartition(topic.topic(), partition.partition());
          int most = Math.max(0, partition.partitionMaxBytes());
          wanted.put(id, new FetchRequest.Partition(id, partition.fetchOffset(), most));
        }
      }
    }
    return wanted;
  }

  private static Map<TopicPartition, PartitionData> byPartition(FetchResponse response) {
    Map<TopicPartition, PartitionData> found = new LinkedHashMap<>();
    response.partitions().forEach(data -> found.put(data.partition(), data));
    return found;
  }

  private static FetchResponseData answer(
      FetchRequestData request, Map<TopicPartition, PartitionData> found) {
    List<FetchResponseData.FetchableTopicResponse> topics = new ArrayList<>();
    for (FetchRequestData.FetchTopic topic : request.topics()) {
      List<FetchResponseData.PartitionData> partitions = new ArrayList<>();
      for (FetchRequestData.FetchPartition partition : topic.partitions()) {
        PartitionData data =
            Names.isPartition(topic.topic(), partition.partition())
                ? found.get(new TopicPartition(topic.topic(), partition.partition()))
                : null;
        partitions.add(data == null ? unknown(partition.partition()) : answer(data));
      }
      topics.add(
          new FetchResponseData.FetchableTopicResponse()
              .setTopic(topic.topic())
              .setPartitions(partitions));
    }
    return new FetchResponseData().setResponses(topics);
  }

  private static FetchResponseData.PartitionData answer(PartitionData data) {
    FetchResponseData.PartitionData answer =
        new FetchResponseData.PartitionData()
            .setPartitionIndex(data.partition().partition())
            .setErrorCode(data.error().code())
            .setHighWatermark(data.highWatermark())
            .setLastStableOffset(data.lastStableOffset())
            .setLogStartOffset(data.logStartOffset())
            .setAbortedTransactions(
                data.aborted().stream()
                    .map(
                        aborted ->
                            new FetchResponseData.AbortedTransaction()
                                .setProducerId(aborted.producerId())
                                .setFirstOffset(aborted.firstOffset()))
                    .toList());
    KafkaRecords.answer(answer, data.batches());
    return answer;
  }

  private static FetchResponseData.PartitionData unknown(int partition) {
    FetchResponseData.PartitionData answer =
        new FetchResponseData.PartitionData()
            .setPartitionIndex(partition)
            .setErrorCode(Errors.UNKNOWN_TOPIC_OR_PARTITION.code())
            .setHighWatermark(-1);
    KafkaRecords.answer(answer, List.of());
    return answer;
  }
}
