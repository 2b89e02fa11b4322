package dev.timebound.fetch;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Partitions whose reads were cut for the others' sake before they had brought anything, and that
 * have not answered since. Slower than the others by a grace is not ill: a connection may have been
 * dialled, a plan made. Such a partition is held back for a short while only, so that it costs the
 * others no second grace in that time; cut once more after it, it has stalled (FE-20). One that is
 * held back is tried beside others as often as that, at most. Of bounded size: beyond it all are
 * forgotten. No clock. Thread-safe.
 */
final class CutLog {
  private static final int MOST = 10_000;

  private final long hold;
  private final long forget;
  private final Map<TopicPartition, Long> cutAt = new ConcurrentHashMap<>();
  private final Map<TopicPartition, Long> triedAt = new ConcurrentHashMap<>();

  /**
   * @param hold how long one that was cut is held back, in nanoseconds
   * @param forget after which a cut says nothing any more
   */
  CutLog(long hold, long forget) {
    this.hold = hold;
    this.forget = forget;
  }

  /** It was cut, with a grace; true where it has stalled. */
  boolean cut(TopicPartition partition, long now) {
    Long before = cutAt.get(partition);
    if (before != null && now - before < hold) {
      return false; // the same slowness, met by another request
    }
    if (before != null && now - before < forget) {
      cutAt.remove(partition);
      return true;
    }
    put(cutAt, partition, now);
    return false;
  }

  private static void put(Map<TopicPartition, Long> times, TopicPartition partition, long now) {
    if (times.size() >= MOST) {
      times.clear();
    }
    times.put(partition, now);
  }

  /** Whether one that is held back is to be tried beside others; it is, where it may be. */
  boolean mayTry(TopicPartition partition, long now) {
    Long at = triedAt.get(partition);
    if (at != null && now - at < hold) {
      return false;
    }
    put(triedAt, partition, now);
    return true;
  }

  void answered(TopicPartition partition) {
    if (!cutAt.isEmpty()) {
      cutAt.remove(partition);
    }
    if (!triedAt.isEmpty()) {
      triedAt.remove(partition);
    }
  }

  boolean isHeldBack(TopicPartition partition, long now) {
    Long at = cutAt.isEmpty() ? null : cutAt.get(partition);
    return at != null && now - at < hold;
  }
}
