package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import java.time.Duration;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

/** Nanoseconds from the start of a request, on the monotonic clock of its read deadline (FE-8). */
final class RequestClock {
  private final Deadline deadline;
  private final long total;

  RequestClock(Deadline deadline) {
    this.deadline = deadline;
    this.total = deadline.remainingNanos();
  }

  /** When the read deadline passes. */
  long total() {
    return total;
  }

  long now() {
    return total - deadline.remainingNanos();
  }

  /** The deadline that passes then; the read deadline itself from its instant on. */
  Deadline at(long instant) {
    return instant >= total ? deadline : deadline.before(Duration.ofNanos(total - instant));
  }

  /**
   * Keeps the read deadline's timer running until it is disposed: what is bounded by that deadline,
   * one call after the other, then neither starts it nor stops it.
   */
  Disposable holdTimer() {
    return Mono.never()
        .transform(Deadlines.of(deadline, "fetch"))
        .subscribe(never -> {}, passed -> {});
  }

  Deadline deadline() {
    return deadline;
  }
}
