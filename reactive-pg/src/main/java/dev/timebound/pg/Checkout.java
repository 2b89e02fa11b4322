package dev.timebound.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.health.Claim;
import dev.timebound.health.FailureKind;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * One read's hold on a reader: its claim in the health engine and, once it has one, its connection.
 * Given back whole, once.
 */
final class Checkout {
  private final Claim<Reader> claim;

  // guarded by this
  private @Nullable Lease lease;
  private boolean ended;

  Checkout(Claim<Reader> claim) {
    this.claim = claim;
  }

  Reader reader() {
    return claim.member();
  }

  /** A connection, within the acquire timeout and the deadline. Errors are refusals. */
  Mono<Lease> acquire(Deadline deadline) {
    Duration budget = deadline.isNone() ? Duration.ofDays(1) : deadline.remaining();
    return reader()
        .pool()
        .acquire(budget)
        // next to the pool, so that a connection that comes with the cancel is not lost
        .doOnNext(this::attach)
        .doOnError(e -> ended(acquireFailed(e), e));
  }

  private synchronized void attach(Lease got) {
    if (ended) {
      got.release();
    } else {
      lease = got;
    }
  }

  /** What says something of the reader: a dial that failed, or one that hangs. (PG-30) */
  private @Nullable FailureKind acquireFailed(Throwable e) {
    if (e instanceof RefusedException refused) {
      boolean hangs =
          refused.reason() == RouteReason.READER_ACQUIRE_TIMEOUT && reader().pool().dialHangs();
      return hangs || refused.reason() == RouteReason.READER_DIAL_FAILED
          ? FailureKind.CONNECTION
          : null;
    }
    return null;
  }

  private void ended(@Nullable FailureKind kind, @Nullable Throwable cause) {
    if (kind == null) {
      claim.cancelled();
    } else {
      claim.failed(kind, cause);
    }
  }

  /** The read is over, its statements have ended or may run on. */
  void end(boolean answered, boolean mayRun) {
    if (answered) {
      claim.succeeded();
    } else {
      claim.cancelled();
    }
    Lease held = take();
    if (held == null) {
      return;
    }
    if (mayRun) {
      held.cancelled();
    } else {
      held.release();
    }
  }

  /** The reader failed under the read: the connection goes at once. */
  void fail(FailureKind kind, Throwable cause, CloseReason close) {
    claim.failed(kind, cause);
    drop(close);
  }

  /** It is given up in the middle of something. */
  void drop(CloseReason close) {
    claim.cancelled();
    Lease held = take();
    if (held != null) {
      held.drop(close);
    }
  }

  private synchronized @Nullable Lease take() {
    ended = true;
    Lease held = lease;
    lease = null;
    return held;
  }
}
