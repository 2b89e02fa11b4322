package dev.timebound.pg;

import java.util.Locale;

/** Why a read went where it went. Each is a meter's tag, in lower case. (PG-11) */
public enum RouteReason {
  /** A reader proved itself and served it. */
  PROVED,
  /** No reader connection was free, or dialled, within the acquire timeout. */
  READER_ACQUIRE_TIMEOUT,
  /** As many wait for a reader connection as may. */
  READER_SATURATED,
  /** The dial of a reader connection failed. */
  READER_DIAL_FAILED,
  /** The reader did not prove itself within the proof timeout. */
  READER_PROOF_TIMEOUT,
  /** The reader's connection turned out broken. */
  READER_VALIDATION_ERROR,
  /** The reader is behind the read's fence. */
  READER_STALE,
  /** Every reader is out, or went out before the read's first row. (PG-11a, PG-30) */
  READER_QUARANTINED,
  /** The reader's recovery ended the statement before its first row. (PG-12) */
  READER_CONFLICT,
  /** No reader is configured. */
  NO_READER,
  /** The read asked for the writer: {@link ReadOptions#onWriter}. */
  WRITER_REQUESTED,
  /** The caller asked for a transaction that may write. */
  READ_WRITE_REQUESTED;

  private final String tag = name().toLowerCase(Locale.ROOT);

  /** As in meters and log lines. */
  public String tag() {
    return tag;
  }
}
