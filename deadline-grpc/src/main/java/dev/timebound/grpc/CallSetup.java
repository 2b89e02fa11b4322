package dev.timebound.grpc;

import dev.timebound.deadline.Deadline;
import io.grpc.CallOptions;
import io.grpc.Metadata;
import io.grpc.Status;
import reactor.util.context.ContextView;

/**
 * What one subscription's call is made with: the caller's options, and in them the Context, the
 * attempt and what is left of the Context's deadline.
 */
record CallSetup(CallOptions options, CallAttempt attempt, DeadlineBound bound) {

  /** From what one subscriber brings. The deadline must not be expired. */
  static CallSetup of(
      String operation, CallOptions options, Deadline deadline, ContextView context) {
    CallOptions all = options.withOption(GrpcCalls.CONTEXT, context);
    CallAttempt attempt = options.getOption(CallAttempt.KEY);
    if (attempt == null) {
      attempt = CallAttempt.create();
      all = all.withOption(CallAttempt.KEY, attempt);
    }
    DeadlineBound bound = DeadlineBound.of(operation, deadline, options);
    return new CallSetup(bound.apply(all), attempt, bound);
  }

  /** The error that a status means downstream. */
  Throwable failure(Status status, Metadata trailers) {
    return bound.failure(status.getCode(), status.asRuntimeException(trailers));
  }
}
