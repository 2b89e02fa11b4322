package dev.timebound.samples.kafka;

import dev.timebound.deadline.Deadlines;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.samples.kafka.group.GroupCoordinator;
import dev.timebound.samples.kafka.group.GroupHome;
import dev.timebound.samples.kafka.group.OffsetStore;
import dev.timebound.samples.kafka.group.OffsetStore.Committed;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.errors.NotCoordinatorException;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.OffsetCommitResponseData.OffsetCommitResponsePartition;
import org.apache.kafka.common.message.OffsetCommitResponseData.OffsetCommitResponseTopic;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopic;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponsePartition;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseTopic;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;

/** How far a group came: OffsetCommit and OffsetFetch. */
final class GroupOffsetHandlers {
  private static final Logger LOG = LoggerFactory.getLogger(GroupOffsetHandlers.class);
  private static final int MOST_METADATA = 4096;
  private static final char NUL = 0;

  private final GroupCoordinator groups;
  private final GroupHome home;
  private final OffsetStore offsets;
  private final Duration time;

  GroupOffsetHandlers(GroupCoordinator groups, GroupHome home, OffsetStore offsets, Duration time) {
    this.groups = groups;
    this.home = home;
    this.offsets = offsets;
    this.time = time;
  }

  void serveIn(Apis apis) {
    apis.serve(ApiKeys.OFFSET_COMMIT, 2, 6, this::commit)
        .serve(ApiKeys.OFFSET_FETCH, 1, 7, this::fetch);
  }

  private Mono<ApiMessage> commit(Call call, ApiMessage body) {
    OffsetCommitRequestData request = (OffsetCommitRequestData) body;
    if (!Names.isGroup(request.groupId())) {
      return Mono.just(answer(request, Errors.INVALID_GROUP_ID));
    }
    if (!home.isHere(request.groupId())) {
      return Mono.just(answer(request, Errors.NOT_COORDINATOR));
    }
    Map<TopicPartition, Committed> taken = new HashMap<>();
    for (OffsetCommitRequestTopic topic : request.topics()) {
      for (OffsetCommitRequestPartition partition : topic.partitions()) {
        if (refusal(topic.name(), partition) == Errors.NONE) {
          String metadata = partition.committedMetadata();
          taken.put(
              new TopicPartition(topic.name(), partition.partitionIndex()),
              new Committed(
                  partition.committedOffset(),
                  partition.committedLeaderEpoch(),
                  metadata == null ? "" : metadata));
        }
      }
    }
    return groups
        .mayCommit(request.groupId(), request.memberId(), request.generationIdOrMemberEpoch())
        .flatMap(
            error ->
                error == Errors.NONE
                    ? offsets.commit(request.groupId(), taken).thenReturn(error)
                    : Mono.just(error))
        .transform(Deadlines.within(time))
        .onErrorResume(error -> unavailable(call, request.groupId(), error))
        .map(error -> answer(request, error));
  }

  private static Errors refusal(String topic, OffsetCommitRequestPartition partition) {
    if (!Names.isPartition(topic, partition.partitionIndex())) {
      return Errors.UNKNOWN_TOPIC_OR_PARTITION;
    }
    String metadata = partition.committedMetadata();
    if (metadata == null) {
      return Errors.NONE;
    }
    if (metadata.indexOf(NUL) >= 0) {
      return Errors.INVALID_COMMIT_OFFSET_SIZE; // Postgres keeps none; it is final for clients
    }
    return metadata.length() > MOST_METADATA ? Errors.OFFSET_METADATA_TOO_LARGE : Errors.NONE;
  }

  /** What every client tries again after. */
  private static Mono<Errors> unavailable(Call call, String group, Throwable error) {
    if (error instanceof NotCoordinatorException) {
      return Mono.just(Errors.NOT_COORDINATOR);
    }
    LOG.warn("{} of group {} failed", call.api().name, group, error);
    return Mono.just(Errors.COORDINATOR_NOT_AVAILABLE);
  }

  private static ApiMessage answer(OffsetCommitRequestData request, Errors error) {
    List<OffsetCommitResponseTopic> topics = new ArrayList<>();
    for (OffsetCommitRequestTopic topic : request.topics()) {
      List<OffsetCommitResponsePartition> partitions = new ArrayList<>();
      for (OffsetCommitRequestPartition partition : topic.partitions()) {
        Errors own = error == Errors.NONE ? refusal(topic.name(), partition) : error;
        partitions.add(
            new OffsetCommitResponsePartition()
                .setPartitionIndex(partition.partitionIndex())
                .setErrorCode(own.code()));
      }
      topics.add(new OffsetCommitResponseTopic().setName(topic.name()).setPartitions(partitions));
    }
    return new OffsetCommitResponseData().setTopics(topics);
  }

  private Mono<ApiMessage> fetch(Call call, ApiMessage body) {
    OffsetFetchRequestData request = (OffsetFetchRequestData) body;
    if (!Names.isGroup(request.groupId())) {
      return Mono.just(failed(request, Errors.INVALID_GROUP_ID));
    }
    if (!home.isHere(request.groupId())) {
      return Mono.just(failed(request, Errors.NOT_COORDINATOR));
    }
    return offsets
        .committed(request.groupId())
        .map(found -> answer(wanted(request, found), found))
        .transform(Deadlines.within(time))
        .onErrorResume(
            error ->
                unavailable(call, request.groupId(), error).map(code -> failed(request, code)));
  }

  /** The partitions asked for; all that the group committed where it asks for no topic by name. */
  private static Map<String, List<Integer>> wanted(
      OffsetFetchRequestData request, Map<TopicPartition, Committed> found) {
    Map<String, List<Integer>> wanted = new LinkedHashMap<>();
    if (request.topics() == null) {
      found
          .keySet()
          .forEach(
              partition ->
                  wanted
                      .computeIfAbsent(partition.topic(), topic -> new ArrayList<>())
                      .add(partition.partition()));
      return wanted;
    }
    for (OffsetFetchRequestTopic topic : request.topics()) {
      wanted.put(topic.name(), topic.partitionIndexes());
    }
    return wanted;
  }

  private static ApiMessage answer(
      Map<String, List<Integer>> wanted, Map<TopicPartition, Committed> found) {
    List<OffsetFetchResponseTopic> topics = new ArrayList<>();
    wanted.forEach(
        (topic, partitions) ->
            topics.add(
                new OffsetFetchResponseTopic()
                    .setName(topic)
                    .setPartitions(
                        partitions.stream()
                            .map(index -> partition(topic, index, found))
                            .toList())));
    return new OffsetFetchResponseData().setTopics(topics);
  }

  private static OffsetFetchResponsePartition partition(
      String topic, int index, Map<TopicPartition, Committed> found) {
    @Nullable Committed committed =
        Names.isPartition(topic, index) ? found.get(new TopicPartition(topic, index)) : null;
    OffsetFetchResponsePartition answer =
        new OffsetFetchResponsePartition().setPartitionIndex(index);
    return committed == null
        ? answer.setCommittedOffset(-1).setMetadata("")
        : answer
            .setCommittedOffset(committed.offset())
            .setCommittedLeaderEpoch(committed.leaderEpoch())
            .setMetadata(committed.metadata());
  }

  /** The error stands at each partition too, where the versions before 2 look for it. */
  private static ApiMessage failed(OffsetFetchRequestData request, Errors error) {
    List<OffsetFetchResponseTopic> topics = new ArrayList<>();
    if (request.topics() != null) {
      for (OffsetFetchRequestTopic topic : request.topics()) {
        topics.add(
            new OffsetFetchResponseTopic()
                .setName(topic.name())
                .setPartitions(
                    topic.partitionIndexes().stream()
                        .map(
                            index ->
                                new OffsetFetchResponsePartition()
                                    .setPartitionIndex(index)
                                    .setCommittedOffset(-1)
                                    .setMetadata("")
                                    .setErrorCode(error.code()))
                        .toList()));
      }
    }
    return new OffsetFetchResponseData().setTopics(topics).setErrorCode(error.code());
  }
}
