package dev.timebound.pg;

import org.jspecify.annotations.Nullable;

/**
 * What is configured as the writer is a standby: it was demoted, or never was a primary. (PG-14a)
 */
public final class WriterRoleException extends RuntimeException {
  private static final long serialVersionUID = 1;

  WriterRoleException(@Nullable Throwable cause) {
    super(
        "the writer is in recovery: it is a standby now and takes no writes (expected: a primary)",
        cause);
  }
}
