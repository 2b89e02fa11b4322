package dev.timebound.fetch;

import org.jspecify.annotations.Nullable;

/** A partition answered with an error, to a caller that gets no {@link PartitionData}. */
public final class FetchException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final ErrorCode error;

  FetchException(
      TopicPartition partition, long offset, ErrorCode error, @Nullable Throwable cause) {
    super(partition + " at " + offset + ": " + error, cause);
    this.error = error;
  }

  public ErrorCode error() {
    return error;
  }
}
