package dev.timebound.grpc;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import io.grpc.CallOptions;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import reactor.util.context.ContextView;

/**
 * What one subscription's call is made with: the caller's options, and in them the Context, the
 * attempt and what is left of the Context's deadline.
 *
 * @param operation what the deadline's exception names
 * @param bound the Context's deadline on gRPC's clock; null where it does not bound this call:
 *     there is none, or the options' own is the earlier one
 */
record CallSetup(
    String operation,
    CallOptions options,
    CallAttempt attempt,
    Deadline deadline,
    io.grpc.@Nullable Deadline bound) {

  /** From what one subscriber brings. The deadline must not be expired. */
  static CallSetup of(
      String operation, CallOptions options, Deadline deadline, ContextView context) {
    CallOptions all = options.withOption(GrpcCalls.CONTEXT, context);
    CallAttempt attempt = options.getOption(CallAttempt.KEY);
    if (attempt == null) {
      attempt = CallAttempt.create();
      all = all.withOption(CallAttempt.KEY, attempt);
    }
    io.grpc.Deadline bound = null;
    if (!deadline.isNone()) {
      long left = deadline.remainingNanos();
      io.grpc.Deadline already = options.getDeadline();
      if (already == null || left < already.timeRemaining(TimeUnit.NANOSECONDS)) {
        bound = io.grpc.Deadline.after(left, TimeUnit.NANOSECONDS);
        all = all.withDeadline(bound);
      }
    }
    return new CallSetup(operation, all, attempt, deadline, bound);
  }

  /** The error that a status means downstream. */
  Throwable failure(Status status, Metadata trailers) {
    StatusRuntimeException error = status.asRuntimeException(trailers);
    if (status.getCode() == Status.Code.DEADLINE_EXCEEDED
        && bound != null
        && (bound.isExpired() || deadline.isExpired())) {
      return new DeadlineExceededException(operation, deadline, error);
    }
    return error;
  }
}
