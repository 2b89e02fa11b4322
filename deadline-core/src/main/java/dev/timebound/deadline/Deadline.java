package dev.timebound.deadline;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** A point on a monotonic clock by which an answer is due. */
public final class Deadline {
  private static final Deadline NONE = new Deadline(0, null);

  private final long at;
  private final @Nullable Scheduler scheduler;

  private Deadline(long at, @Nullable Scheduler scheduler) {
    this.at = at;
    this.scheduler = scheduler;
  }

  public static Deadline after(Duration budget) {
    return after(budget, Schedulers.parallel());
  }

  public static Deadline after(Duration budget, Scheduler scheduler) {
    return new Deadline(scheduler.now(TimeUnit.NANOSECONDS) + budget.toNanos(), scheduler);
  }

  public static Deadline none() {
    return NONE;
  }

  public boolean isNone() {
    return scheduler == null;
  }

  /** Nanoseconds left; {@link Long#MAX_VALUE} where there is no deadline. */
  public long remainingNanos() {
    return scheduler == null ? Long.MAX_VALUE : at - scheduler.now(TimeUnit.NANOSECONDS);
  }

  public boolean isExpired() {
    return remainingNanos() <= 0;
  }
}
