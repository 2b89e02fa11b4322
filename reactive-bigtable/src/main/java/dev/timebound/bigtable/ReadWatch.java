package dev.timebound.bigtable;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import reactor.core.scheduler.Scheduler;

/**
 * One timer for all the reads of a client: a read is looked at every tick and counts the ticks that
 * passed without news. Counted and not timed, so that a tick that comes late (a pause of the
 * process, a busy scheduler) is never taken for the server's silence. A read's limit is found late
 * by a tick or two, a tenth of it. The timer runs only while a read does.
 */
final class ReadWatch {
  /** Ticks that make up the shorter of the limits. */
  static final int RESOLUTION = 10;

  interface Watched {
    /** From the scheduler's thread; never two at a time. */
    void tick();
  }

  private final Scheduler scheduler;
  private final long periodNanos;
  private final Set<Watched> watched = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean ticking = new AtomicBoolean();

  ReadWatch(Scheduler scheduler, Duration shortestLimit) {
    this.scheduler = scheduler;
    this.periodNanos = Math.max(1, shortestLimit.toNanos() / RESOLUTION);
  }

  /** Ticks that pass in {@code limit}, rounded up. */
  int ticks(Duration limit) {
    long ticks = (limit.toNanos() + periodNanos - 1) / periodNanos;
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

  boolean isIdle() {
    return watched.isEmpty() && !ticking.get();
  }

  private void tick() {
    for (Watched read : watched) {
      read.tick();
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
}
