package dev.timebound.fetch;

/**
 * What {@code listOffsets} answers for one partition.
 *
 * @param offset −1 with an error, and where no record is at or after the time
 * @param timestamp of the record found; −1 where there is none or it was not asked for by time
 */
public record ListedOffset(TopicPartition partition, ErrorCode error, long offset, long timestamp) {
  static ListedOffset failed(TopicPartition partition, ErrorCode error) {
    return new ListedOffset(partition, error, -1, -1);
  }
}
