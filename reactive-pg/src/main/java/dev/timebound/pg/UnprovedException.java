package dev.timebound.pg;

import java.util.Objects;

/** The proof failed, not the statement. */
final class UnprovedException extends RuntimeException {
  private static final long serialVersionUID = 1;

  UnprovedException(Throwable cause) {
    super(null, cause, false, false);
  }

  @Override
  public synchronized Throwable getCause() {
    return Objects.requireNonNull(super.getCause());
  }
}
