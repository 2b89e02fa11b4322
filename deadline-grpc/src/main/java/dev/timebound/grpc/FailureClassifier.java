package dev.timebound.grpc;

import dev.timebound.health.FailureKind;
import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** An adapter's one table from how a call ended to what that says of its channel. (HE-2a) */
@FunctionalInterface
public interface FailureClassifier {
  /**
   * Called once for each call that ended with an error and that its caller did not cancel.
   *
   * @param answered whether the status came from the server, in its trailers; false where the
   *     client made it up: a reset, a connection that failed, a bare HTTP error, a deadline of its
   *     own
   * @param callersDeadline whether the call's own deadline had passed when it ended
   * @return null where it says nothing of the channel
   */
  @Nullable FailureKind classify(
      Status status, Metadata trailers, boolean answered, boolean callersDeadline);

  /** The table for a plain gRPC service. */
  static FailureClassifier standard() {
    return StandardClassifier.INSTANCE;
  }
}
