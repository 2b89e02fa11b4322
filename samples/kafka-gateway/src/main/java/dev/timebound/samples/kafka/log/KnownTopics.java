package dev.timebound.samples.kafka.log;

import dev.timebound.fetch.TopicPartition;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** The topics of a log that one process has, with their number of partitions. Thread-safe. */
final class KnownTopics {
  private final Map<String, Integer> partitions = new ConcurrentHashMap<>();

  Mono<Map<String, Integer>> all() {
    return Mono.fromSupplier(() -> Map.copyOf(partitions));
  }

  /** Those of the topics that exist. */
  Mono<Map<String, Integer>> of(Set<String> names) {
    return Mono.fromSupplier(
        () ->
            names.stream()
                .filter(partitions::containsKey)
                .collect(Collectors.toMap(name -> name, partitions::get)));
  }

  /** Null where there is no such topic. */
  @Nullable Integer partitions(String topic) {
    return partitions.get(topic);
  }

  boolean has(TopicPartition partition) {
    @Nullable Integer count = partitions.get(partition.topic());
    return count != null && partition.partition() < count;
  }

  /** Makes a topic, once, where there is none; the number of partitions that it has. */
  int make(String topic, ToIntFunction<String> making) {
    return partitions.computeIfAbsent(topic, making::applyAsInt);
  }

  /** It has so many, or more; the number that it has. */
  int atLeast(String topic, int count) {
    return partitions.merge(topic, count, Math::max);
  }
}
