package dev.timebound.samples.kafka.group;

import dev.timebound.fetch.TopicPartition;
import java.util.Map;
import reactor.core.publisher.Mono;

/**
 * How far each group came. Nothing blocks, nothing is done before subscription, signals come on
 * threads that may not be blocked. Thread-safe.
 */
public interface OffsetStore {
  /**
   * How far a group came in one partition.
   *
   * @param offset the next that the group is to read
   * @param leaderEpoch as the client gave it; −1 for none
   * @param metadata the client's own words
   */
  record Committed(long offset, int leaderEpoch, String metadata) {}

  /** Takes all of them or fails with none of them taken; the last one for a partition counts. */
  Mono<Void> commit(String group, Map<TopicPartition, Committed> offsets);

  /** All that the group committed; empty where it did not. */
  Mono<Map<TopicPartition, Committed>> committed(String group);
}
