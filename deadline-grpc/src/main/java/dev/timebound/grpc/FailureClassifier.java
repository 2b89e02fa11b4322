package dev.timebound.grpc;

import dev.timebound.health.FailureKind;
import org.jspecify.annotations.Nullable;

/** An adapter's one table from how a call ended to what that says of its channel. (HE-2a) */
@FunctionalInterface
public interface FailureClassifier {
  /** Called once for each such call; null where its end says nothing of the channel. */
  @Nullable FailureKind classify(EndedCall call);

  /** The table for a plain gRPC service. */
  static FailureClassifier standard() {
    return StandardClassifier.INSTANCE;
  }
}
