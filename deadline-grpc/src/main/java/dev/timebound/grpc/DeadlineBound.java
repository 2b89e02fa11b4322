package dev.timebound.grpc;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import io.grpc.CallOptions;
import io.grpc.Status;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A deadline of the Context as one call's own.
 *
 * @param operation what the deadline's exception names
 * @param bound the deadline on gRPC's clock; null where it does not bound this call: there is none,
 *     or the options' own is the earlier one
 */
record DeadlineBound(String operation, Deadline deadline, io.grpc.@Nullable Deadline bound) {

  static DeadlineBound of(String operation, Deadline deadline, CallOptions options) {
    io.grpc.Deadline bound = null;
    if (!deadline.isNone()) {
      long left = deadline.remainingNanos();
      io.grpc.Deadline already = options.getDeadline();
      if (already == null || left < already.timeRemaining(TimeUnit.NANOSECONDS)) {
        bound = io.grpc.Deadline.after(left, TimeUnit.NANOSECONDS);
      }
    }
    return new DeadlineBound(operation, deadline, bound);
  }

  /** What is left travels as {@code grpc-timeout}. */
  CallOptions apply(CallOptions options) {
    return bound == null ? options : options.withDeadline(bound);
  }

  /** What the call's error means downstream: the Context's own deadline, where that ended it. */
  Throwable failure(Status.Code code, Throwable error) {
    return code == Status.Code.DEADLINE_EXCEEDED
            && bound != null
            && (bound.isExpired() || deadline.isExpired())
        ? new DeadlineExceededException(operation, deadline, error)
        : error;
  }
}
