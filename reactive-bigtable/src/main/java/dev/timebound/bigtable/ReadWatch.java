package dev.timebound.bigtable;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Exceptions;
import reactor.core.scheduler.Scheduler;

/**
 * One timer for all the reads of a client: a read is looked at every tick and counts the ticks that
 * passed without news. Counted and not timed, so that a tick that comes late (a pause of the
 * process, a busy scheduler) is never taken for the server's silence. A read's limit is found late
 * by a tick or two, a tenth of it. The timer runs only while a read does, and a tick longer at
 * most.
 */
final class ReadWatch {
  private static final Logger LOG = LoggerFactory.getLogger(ReadWatch.class);

  /** Ticks that make up the shorter of the limits. */
  static final int RESOLUTION = 10;

  private static final long SHORTEST_TICK = TimeUnit.MILLISECONDS.toNanos(1);

  /** So that a client without reads is still within a second, however long its limits. */
  private static final long LONGEST_TICK = TimeUnit.SECONDS.toNanos(1);

  interface Watched {
    /**
     * From the scheduler's thread; never two at a time. What it throws (a subscriber's error, where
     * rows are delivered on the thread that asks) is logged and stops nothing.
     */
    void tick();
  }

  private final Scheduler scheduler;
  private final long periodNanos;
  private final Set<Watched> watched = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean ticking = new AtomicBoolean();

  ReadWatch(Scheduler scheduler, Duration shortestLimit) {
    this.scheduler = scheduler;
    long tenth = BigtableSettings.nanos(shortestLimit) / RESOLUTION;
    this.periodNanos = Math.max(SHORTEST_TICK, Math.min(LONGEST_TICK, tenth));
  }

  /** Ticks that pass in {@code limit}, rounded up; at least 1. */
  int ticks(Duration limit) {
    long ticks = (BigtableSettings.nanos(limit) - 1) / periodNanos + 1;
    return (int) Math.min(Integer.MAX_VALUE, ticks);
  }

  void add(Watched read) {
    watched.add(read);
    if (!ticking.get() && ticking.compareAndSet(false, true)) {
      scheduler.schedule(this::tick, periodNanos, TimeUnit.NANOSECONDS);
    }
  }

  void remove(Watched read) {
    watched.remove(read);
  }

  /** Whether no read is watched; the timer may have a last tick to come. */
  boolean isIdle() {
    return watched.isEmpty();
  }

  boolean isTicking() {
    return ticking.get();
  }

  private void tick() {
    for (Watched read : watched) {
      guarded(read);
    }
    if (watched.isEmpty()) {
      ticking.set(false);
      // One that was added just before the flag fell has seen it up and started no timer.
      if (watched.isEmpty() || !ticking.compareAndSet(false, true)) {
        return;
      }
    }
    scheduler.schedule(this::tick, periodNanos, TimeUnit.NANOSECONDS);
  }

  /** The other reads' limits must not end with what one read's subscriber throws. */
  private static void guarded(Watched read) {
    try {
      read.tick();
    } catch (Throwable e) {
      Exceptions.throwIfJvmFatal(e);
      LOG.error("a read's subscriber threw while its limit was looked at", e);
    }
  }
}
