package dev.timebound.pg;

import org.jspecify.annotations.Nullable;

/**
 * A read found no reader that could serve it and no room on the writer either; the message names
 * both. (PG-32)
 */
public final class ReaderUnavailableException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final RouteReason reason;

  ReaderUnavailableException(RouteReason reason, String writer, @Nullable Throwable cause) {
    super(
        "no reader could serve the read (" + reason.tag() + "), nor the writer: " + writer, cause);
    this.reason = reason;
  }

  /** Why no reader served it. */
  public RouteReason reason() {
    return reason;
  }
}
