package dev.timebound.samples.kafka;

import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.ListedOffset;
import dev.timebound.fetch.OffsetQuery;
import dev.timebound.fetch.PartitionFetcher;
import dev.timebound.fetch.TopicPartition;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.message.ListOffsetsRequestData;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsTopic;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsTopicResponse;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * ListOffsets: the first offset, the next one, the first at or after a time, that of the latest
 * time.
 */
final class ListOffsetsHandler implements Apis.Handler {
  private final PartitionFetcher fetcher;

  ListOffsetsHandler(PartitionFetcher fetcher) {
    this.fetcher = fetcher;
  }

  @Override
  public Mono<ApiMessage> apply(Call call, ApiMessage body) {
    ListOffsetsRequestData request = (ListOffsetsRequestData) body;
    Map<TopicPartition, OffsetQuery> queries = new LinkedHashMap<>();
    for (ListOffsetsTopic topic : request.topics()) {
      for (ListOffsetsPartition partition : topic.partitions()) {
        OffsetQuery query = query(topic.name(), partition);
        if (query != null) {
          queries.put(query.partition(), query);
        }
      }
    }
    if (queries.isEmpty()) {
      return Mono.just(answer(request, Map.of()));
    }
    Isolation isolation =
        request.isolationLevel() == 1 ? Isolation.READ_COMMITTED : Isolation.READ_UNCOMMITTED;
    return fetcher
        .listOffsets(List.copyOf(queries.values()), isolation)
        .map(
            listed -> {
              Map<TopicPartition, ListedOffset> found = new HashMap<>();
              listed.forEach(each -> found.put(each.partition(), each));
              return answer(request, found);
            });
  }

  /**
   * @return null where there is no such question
   */
  private static @Nullable OffsetQuery query(String topic, ListOffsetsPartition partition) {
    if (!Names.isPartition(topic, partition.partitionIndex())) {
      return null;
    }
    TopicPartition id = new TopicPartition(topic, partition.partitionIndex());
    long time = partition.timestamp();
    if (time == ListOffsetsRequest.EARLIEST_TIMESTAMP) {
      return OffsetQuery.earliest(id);
    }
    if (time == ListOffsetsRequest.LATEST_TIMESTAMP) {
      return OffsetQuery.latest(id);
    }
    if (time == ListOffsetsRequest.MAX_TIMESTAMP) {
      return OffsetQuery.maxTimestamp(id);
    }
    return time >= 0 ? OffsetQuery.at(id, time) : null;
  }

  private static ApiMessage answer(
      ListOffsetsRequestData request, Map<TopicPartition, ListedOffset> found) {
    List<ListOffsetsTopicResponse> topics = new ArrayList<>();
    for (ListOffsetsTopic topic : request.topics()) {
      List<ListOffsetsPartitionResponse> partitions = new ArrayList<>();
      for (ListOffsetsPartition partition : topic.partitions()) {
        OffsetQuery query = query(topic.name(), partition);
        ListedOffset listed = query == null ? null : found.get(query.partition());
        partitions.add(answer(topic.name(), partition, listed));
      }
      topics.add(new ListOffsetsTopicResponse().setName(topic.name()).setPartitions(partitions));
    }
    return new ListOffsetsResponseData().setTopics(topics);
  }

  private static ListOffsetsPartitionResponse answer(
      String topic, ListOffsetsPartition partition, @Nullable ListedOffset listed) {
    ListOffsetsPartitionResponse answer =
        new ListOffsetsPartitionResponse().setPartitionIndex(partition.partitionIndex());
    if (listed == null) {
      Errors error =
          Names.isPartition(topic, partition.partitionIndex())
              ? Errors.UNSUPPORTED_VERSION // a time that stands for something of later versions
              : Errors.UNKNOWN_TOPIC_OR_PARTITION;
      return answer.setErrorCode(error.code());
    }
    return answer
        .setErrorCode(listed.error().code())
        .setOffset(listed.offset())
        .setTimestamp(listed.timestamp());
  }
}
