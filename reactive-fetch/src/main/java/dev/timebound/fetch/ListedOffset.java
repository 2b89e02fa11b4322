package dev.timebound.fetch;

import org.jspecify.annotations.Nullable;

/**
 * What {@code listOffsets} answers for one partition.
 *
 * @param offset −1 with an error, and where no record is at or after the time
 * @param timestamp of the record found; −1 where there is none or it was not asked for by time
 * @param cause of {@link ErrorCode#STORAGE_ERROR} and {@link ErrorCode#REQUEST_TIMED_OUT}, where
 *     one is known; null otherwise
 */
public record ListedOffset(
    TopicPartition partition,
    ErrorCode error,
    long offset,
    long timestamp,
    @Nullable Throwable cause) {
  static ListedOffset found(TopicPartition partition, long offset, long timestamp) {
    return new ListedOffset(partition, ErrorCode.NONE, offset, timestamp, null);
  }

  static ListedOffset failed(TopicPartition partition, ErrorCode error, @Nullable Throwable cause) {
    return new ListedOffset(partition, error, -1, -1, cause);
  }
}
