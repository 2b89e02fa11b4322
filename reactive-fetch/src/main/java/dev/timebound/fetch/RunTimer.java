package dev.timebound.fetch;

import dev.timebound.deadline.Deadlines;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Mono;

/** The one timer of a request, on the scheduler of its deadline; of one thread. */
final class RunTimer {
  private final RequestClock clock;
  private final Runnable step;
  private Disposable timer = Disposables.disposed();
  private long at = Long.MAX_VALUE;

  RunTimer(RequestClock clock, Runnable step) {
    this.clock = clock;
    this.step = step;
  }

  /** The step runs: whatever is set next is set anew, were it for the same instant. */
  void fired() {
    at = Long.MAX_VALUE;
  }

  /**
   * Runs the step then, and maybe once before, at a time that was set earlier: a turn that ends in
   * time, as nearly all do, costs no timer. Long.MAX_VALUE: no more than that.
   */
  void set(long instant) {
    if (instant >= at) {
      return;
    }
    timer.dispose();
    at = instant;
    if (instant < clock.total()) {
      timer = after(instant - clock.now(), step);
    } else {
      // The deadline's own timer tells its bounds from inside: the answer goes before a bound of
      // the caller for the same instant gives up on it (DL-9).
      timer =
          Mono.never()
              .transform(Deadlines.of(clock.deadline(), "fetch wait"))
              .subscribe(never -> {}, passed -> step.run());
    }
  }

  /** Runs a step on the scheduler. */
  Disposable after(long nanos, Runnable task) {
    try {
      return clock.deadline().scheduler().schedule(task, Math.max(0, nanos), TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException disposed) {
      return Disposables.disposed();
    }
  }

  void stop() {
    timer.dispose();
  }
}
