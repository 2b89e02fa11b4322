package dev.timebound.fetch;

/** What a partition answers. The numbers are those of the Kafka protocol. */
public enum ErrorCode {
  /** No error; also what a stalled partition answers, so that its client merely asks again. */
  NONE(0, false),
  /** The offset lies outside the partition, on the word of its authority (FE-12). */
  OFFSET_OUT_OF_RANGE(1, false),
  /** No such topic, or no such partition of it. */
  UNKNOWN_TOPIC_OR_PARTITION(3, true),
  /** The offset that was asked for did not come in time. (FE-16) */
  REQUEST_TIMED_OUT(7, true),
  /** The store failed, or its metadata did not come in time. (FE-17, FE-25) */
  STORAGE_ERROR(56, true);

  private final short code;
  private final boolean retriable;

  ErrorCode(int code, boolean retriable) {
    this.code = (short) code;
    this.retriable = retriable;
  }

  /** The number on the wire. */
  public short code() {
    return code;
  }

  /** Whether the same request may succeed later. */
  public boolean isRetriable() {
    return retriable;
  }
}
