package dev.timebound.cas;

import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import org.jspecify.annotations.Nullable;

/**
 * An attempt's time passed while it waited for something of this side's: blames no shard (CAS-20a).
 */
final class WaitedHereException extends StatusRuntimeException {
  private static final long serialVersionUID = 1L;

  WaitedHereException(String shard, String what, @Nullable Throwable cause) {
    this(Status.DEADLINE_EXCEEDED.withDescription(shard + ": waited for " + what).withCause(cause));
  }

  private WaitedHereException(Status status) {
    super(status);
  }

  /** The same, for another caller. */
  WaitedHereException again() {
    return new WaitedHereException(getStatus());
  }
}
