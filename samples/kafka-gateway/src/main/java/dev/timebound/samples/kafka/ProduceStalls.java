package dev.timebound.samples.kafka;

import dev.timebound.fetch.TopicPartition;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Partitions of which an append did not end in its request's time: for a while, or until one does,
 * they are only tried, so that what else a producer sends is acknowledged meanwhile. After that
 * they have the whole time again. Thread-safe.
 */
final class ProduceStalls {
  /** For one that is held back. */
  static final Duration TRIED = Duration.ofSeconds(1);

  private static final Duration PENALTY = Duration.ofSeconds(30);
  private static final int MOST = 10_000;

  private final Scheduler time = Schedulers.parallel();
  private final Map<TopicPartition, Long> until = new ConcurrentHashMap<>();

  boolean isHeldBack(TopicPartition partition) {
    @Nullable Long end = until.get(partition);
    if (end == null) {
      return false;
    }
    if (end - time.now(TimeUnit.NANOSECONDS) > 0) {
      return true;
    }
    until.remove(partition, end);
    return false;
  }

  void stalled(TopicPartition partition) {
    if (until.size() < MOST) {
      until.put(partition, time.now(TimeUnit.NANOSECONDS) + PENALTY.toNanos());
    }
  }

  void answered(TopicPartition partition) {
    until.remove(partition);
  }
}
