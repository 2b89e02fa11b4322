package dev.timebound.fetch.s3;

import dev.timebound.fetch.TopicPartition;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** An object for each topic, which says how many partitions it has; it never changes. */
final class Topics {
  private static final String FORM = "timebound topic 1, partitions: ";
  private static final int LONGEST = 64;
  private static final int AT_ONCE = 8;

  private final Calls calls;
  private final Keys keys;

  /** Those that were seen: they stay. */
  private final Map<String, Integer> known = new ConcurrentHashMap<>();

  Topics(Calls calls, Keys keys) {
    this.calls = calls;
    this.keys = keys;
  }

  /** The number it has, which is another where it was there before. */
  Mono<Integer> create(String topic, int partitions) {
    return calls
        .putNew(keys.topic(topic), StandardCharsets.US_ASCII.encode(FORM + partitions))
        .flatMap(made -> made ? Mono.just(seen(topic, partitions)) : partitions(topic));
  }

  /** Empty where there is no such topic. */
  Mono<Integer> partitions(String topic) {
    return Mono.defer(
        () -> {
          Integer found = known.get(topic);
          return found != null ? Mono.just(found) : look(topic);
        });
  }

  private Mono<Integer> look(String topic) {
    String key = keys.topic(topic);
    return calls
        .bytes(key, 0, LONGEST)
        .map(bytes -> seen(topic, parse(bytes, calls.where(key))))
        .onErrorResume(Calls::isMissing, none -> Mono.empty());
  }

  private Integer seen(String topic, int partitions) {
    known.put(topic, partitions);
    return partitions;
  }

  private static int parse(ByteBuffer bytes, String where) {
    String text = StandardCharsets.ISO_8859_1.decode(bytes).toString();
    try {
      if (text.startsWith(FORM)) {
        int partitions = Integer.parseInt(text.substring(FORM.length()));
        if (partitions > 0) {
          return partitions;
        }
      }
    } catch (NumberFormatException e) {
      // told below
    }
    throw ObjectIndex.damaged(where, "'" + text + "'", FORM + "a number >= 1");
  }

  Mono<Boolean> exists(TopicPartition partition) {
    return partitions(partition.topic())
        .map(partitions -> partition.partition() < partitions)
        .defaultIfEmpty(false);
  }

  Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked) {
    return Flux.fromStream(() -> asked.stream().map(TopicPartition::topic).distinct())
        .flatMap(topic -> partitions(topic).map(found -> Map.entry(topic, found)), AT_ONCE)
        .collectMap(Map.Entry::getKey, Map.Entry::getValue)
        .map(
            found -> {
              Set<TopicPartition> there = new LinkedHashSet<>(asked);
              there.removeIf(each -> each.partition() >= found.getOrDefault(each.topic(), 0));
              return there;
            });
  }
}
