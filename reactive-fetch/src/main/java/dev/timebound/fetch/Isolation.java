package dev.timebound.fetch;

/** What a reader sees of transactions. */
public enum Isolation {
  /** All records up to the high watermark, those of open and aborted transactions too. */
  READ_UNCOMMITTED,
  /**
   * Records up to the last stable offset: none of an open transaction. Those of aborted ones are
   * among them, and the list of aborted transactions says which.
   */
  READ_COMMITTED
}
