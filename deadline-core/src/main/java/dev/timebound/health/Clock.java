package dev.timebound.health;

import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import reactor.core.scheduler.Scheduler;

/**
 * The engine's time: nanoseconds since the engine was built, on its Scheduler's monotonic clock.
 * They start at 0, so that sums and "never" need no thought of overflow.
 */
final class Clock {
  /** Before any moment; differences with it do not overflow. */
  static final long NEVER = Long.MIN_VALUE / 4;

  private final Scheduler scheduler;
  private final long epoch;

  Clock(Scheduler scheduler) {
    this.scheduler = scheduler;
    this.epoch = scheduler.now(TimeUnit.NANOSECONDS);
  }

  long now() {
    return scheduler.now(TimeUnit.NANOSECONDS) - epoch;
  }

  /** The Scheduler's milliseconds are the wall clock. */
  Instant wall() {
    return Instant.ofEpochMilli(scheduler.now(TimeUnit.MILLISECONDS));
  }

  /** In nanoseconds, at most some 73 years. */
  static long nanos(Duration duration) {
    long most = Long.MAX_VALUE / 4;
    return duration.compareTo(Duration.ofNanos(most)) > 0 ? most : duration.toNanos();
  }
}
