package dev.timebound.samples.kafka.group;

import dev.timebound.fetch.TopicPartition;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import reactor.core.publisher.Mono;

/** Keeps them as long as the process runs. */
public final class MemoryOffsetStore implements OffsetStore {
  private final Map<String, Map<TopicPartition, Committed>> groups = new ConcurrentHashMap<>();

  @Override
  public Mono<Void> commit(String group, Map<TopicPartition, Committed> offsets) {
    return Mono.fromRunnable(
        () ->
            groups.merge(
                group,
                Map.copyOf(offsets),
                (before, more) -> {
                  Map<TopicPartition, Committed> all = new HashMap<>(before);
                  all.putAll(more);
                  return Map.copyOf(all);
                }));
  }

  @Override
  public Mono<Map<TopicPartition, Committed>> committed(String group) {
    return Mono.fromSupplier(() -> groups.getOrDefault(group, Map.of()));
  }
}
