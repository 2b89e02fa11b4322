package dev.timebound.pg;

import java.util.Locale;

/** Why a reader connection was closed in place of going back to its pool. (PG-15, PG-17) */
enum CloseReason {
  /** The release check had no answer in time. */
  TIMEOUT,
  /** The connection is broken. */
  ERROR,
  /** It is, or may be, inside a transaction. */
  OPEN_TRANSACTION,
  /** Its statement may still run, or a cancel request for it may still arrive. (PG-19) */
  CANCELLED,
  /** A maintenance read was given up. (PG-15a) */
  ABANDONED;

  private final String tag = name().toLowerCase(Locale.ROOT);

  String tag() {
    return tag;
  }
}
