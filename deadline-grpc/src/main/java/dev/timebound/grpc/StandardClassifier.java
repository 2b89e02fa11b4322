package dev.timebound.grpc;

import dev.timebound.health.FailureKind;
import org.jspecify.annotations.Nullable;

/** {@link FailureClassifier#standard}. */
final class StandardClassifier implements FailureClassifier {
  static final StandardClassifier INSTANCE = new StandardClassifier();

  private StandardClassifier() {}

  @Override
  public @Nullable FailureKind classify(EndedCall call) {
    boolean answered = call.answered();
    return switch (call.status().getCode()) {
      case UNAVAILABLE -> FailureKind.CONNECTION;
      case DEADLINE_EXCEEDED -> call.callersDeadline() ? null : FailureKind.CONNECTION;
      case RESOURCE_EXHAUSTED -> FailureKind.OVERLOAD;
      // One that the server sent is a server in trouble; one without trailers is a reset, which
      // grpc-java calls INTERNAL.
      case INTERNAL -> answered ? FailureKind.OVERLOAD : FailureKind.CONNECTION;
      // Nobody here asked for it: a reset with CANCEL, or a connection closed under the call.
      case CANCELLED, UNKNOWN -> answered ? FailureKind.ANSWER : FailureKind.CONNECTION;
      case OK,
          INVALID_ARGUMENT,
          NOT_FOUND,
          ALREADY_EXISTS,
          PERMISSION_DENIED,
          FAILED_PRECONDITION,
          ABORTED,
          OUT_OF_RANGE,
          UNIMPLEMENTED,
          DATA_LOSS,
          UNAUTHENTICATED ->
          // Without trailers it is the client's own (credentials that failed, a bare HTTP 401): no
          // word of the server's.
          answered ? FailureKind.ANSWER : null;
    };
  }
}
