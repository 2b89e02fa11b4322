package dev.timebound.fetch;

import org.jspecify.annotations.Nullable;

/**
 * The bytes of one request. They are reserved before a read starts, so that what reads that run at
 * the same time bring never exceeds the request's limit by more than its one first batch (FE-9,
 * FE-13). Thread-safe: batches are taken on the threads that read them.
 */
final class ByteBudget {
  private final long max;
  private final long min;

  // guarded by this
  private long accepted;
  private long reserved;
  private @Nullable Reservation first;

  ByteBudget(long max, long min) {
    this.max = max;
    this.min = min;
  }

  /** What a read may bring. Its fields are the budget's. */
  static final class Reservation {
    private final boolean firstOfAnySize;
    private final int bytes;
    private long left;
    private long room;
    private volatile boolean lapsed;

    private Reservation(int bytes, long room, boolean firstOfAnySize) {
      this.bytes = bytes;
      this.left = bytes;
      this.room = room;
      this.firstOfAnySize = firstOfAnySize;
    }

    /** What the store is told. */
    int bytes() {
      return bytes;
    }

    /** What it reserved is free for others. */
    boolean hasLapsed() {
      return lapsed;
    }

    /** Whether it may bring the request's first batch whatever its size; one read at a time may. */
    boolean firstOfAnySize() {
      return firstOfAnySize;
    }
  }

  /**
   * Reserves for a partition that still wants so many.
   *
   * @return null where others have reserved what is left: it is to be tried when one of them ends
   */
  synchronized @Nullable Reservation reserve(long wanted) {
    long free = max - accepted - reserved;
    if (free <= 0 && reserved > 0 && wanted > 0) {
      return null;
    }
    int bytes = (int) Math.max(0, Math.min(wanted, free));
    boolean any = accepted == 0 && first == null;
    Reservation made = new Reservation(bytes, wanted, any);
    reserved += bytes;
    if (any) {
      first = made;
    }
    return made;
  }

  /** Whether a batch is taken into the answer; where it is not, its read is over. */
  synchronized boolean accept(Reservation by, int size) {
    boolean asFirst = by.firstOfAnySize && accepted == 0;
    if (size <= by.left) {
      by.left -= size;
      reserved -= size;
    } else if (!asFirst && (size > by.room || size > max - accepted - (reserved - by.left))) {
      return false;
    } else {
      reserved -= by.left;
      by.left = 0;
    }
    by.room -= size;
    accepted += size;
    return true;
  }

  /**
   * A read takes long: what it reserved is free for others. What it still brings is taken where
   * there is room then.
   */
  synchronized void lapse(Reservation by) {
    by.lapsed = true;
    reserved -= by.left;
    by.left = 0;
    if (first == by) {
      first = null;
    }
  }

  /** The read is over; any number of times. */
  void release(Reservation by) {
    lapse(by);
  }

  /** Whether a read that begins now may bring a first batch of any size. */
  synchronized boolean firstIsFree() {
    return accepted == 0 && first == null;
  }

  synchronized long accepted() {
    return accepted;
  }

  /** Exactly min_bytes is enough (FE-25). */
  synchronized boolean enough() {
    return accepted >= min;
  }

  synchronized boolean full() {
    return accepted >= max;
  }

  synchronized long reserved() {
    return reserved;
  }
}
