package dev.timebound.samples.kafka.log;

import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.TopicPartition;
import java.util.Map;
import java.util.Set;
import reactor.core.publisher.Mono;

/**
 * Topics, and appends to them. Nothing blocks, nothing is done before subscription, and signals may
 * come on any thread that may not be blocked. Thread-safe.
 */
public interface TopicLog {
  /** What a fetcher reads from; the same one always. */
  PartitionStore store();

  /** All topics, with their number of partitions. */
  Mono<Map<String, Integer>> topics();

  /** Those of the topics that exist, with their number of partitions. */
  Mono<Map<String, Integer>> topics(Set<String> names);

  /**
   * Makes a topic where there is none of this name.
   *
   * @param partitions {@code >= 1}
   * @return the number of partitions it has, which is another where it was there before
   */
  Mono<Integer> create(String topic, int partitions);

  /**
   * Writes a batch at the end of its partition, or says why not. Of two appends to one partition
   * whichever was subscribed first is not sure to come first: who needs an order waits for the
   * first one's end. A cancel may come too late to stop it.
   *
   * <p>What a reader sees has no gaps: an offset is visible only when all before it are.
   */
  Mono<Appended> append(TopicPartition partition, ProducedBatch batch);

  /** An id that no other idempotent producer has or had. */
  Mono<Long> newProducerId();
}
