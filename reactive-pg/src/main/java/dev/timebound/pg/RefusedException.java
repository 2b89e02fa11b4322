package dev.timebound.pg;

import org.jspecify.annotations.Nullable;

/** A reader cannot serve this read, and why; the caller never sees it. */
final class RefusedException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final RouteReason reason;

  RefusedException(RouteReason reason, String message, @Nullable Throwable cause) {
    super(message, cause, false, false);
    this.reason = reason;
  }

  RouteReason reason() {
    return reason;
  }
}
