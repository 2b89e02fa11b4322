package dev.timebound.fetch;

import java.util.Objects;

/**
 * An offset that is asked for by {@code listOffsets}.
 *
 * @param timestamp milliseconds since 1970 of {@link Kind#AT}; −1 otherwise
 */
public record OffsetQuery(TopicPartition partition, Kind kind, long timestamp) {
  /** What is asked for. */
  public enum Kind {
    /** The first offset that can be read. */
    EARLIEST,
    /** One past the last that the isolation shows. */
    LATEST,
    /** The first whose record is at or after a time. */
    AT,
    /** The first whose record has the latest time of all. */
    MAX_TIMESTAMP
  }

  public OffsetQuery {
    Objects.requireNonNull(partition, "partition");
    if (kind == Kind.AT && timestamp < 0) {
      throw Settings.refused("timestamp", timestamp, ">= 0");
    }
  }

  public static OffsetQuery earliest(TopicPartition partition) {
    return new OffsetQuery(partition, Kind.EARLIEST, -1);
  }

  public static OffsetQuery latest(TopicPartition partition) {
    return new OffsetQuery(partition, Kind.LATEST, -1);
  }

  /** The first of the records that have the latest time; −1 where none has one. */
  public static OffsetQuery maxTimestamp(TopicPartition partition) {
    return new OffsetQuery(partition, Kind.MAX_TIMESTAMP, -1);
  }

  /**
   * @param timestamp milliseconds since 1970, {@code >= 0}
   */
  public static OffsetQuery at(TopicPartition partition, long timestamp) {
    return new OffsetQuery(partition, Kind.AT, timestamp);
  }
}
