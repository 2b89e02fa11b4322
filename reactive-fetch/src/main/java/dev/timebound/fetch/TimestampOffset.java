package dev.timebound.fetch;

/**
 * What was found for a time.
 *
 * @param offset −1 where no record is at or after the time
 * @param timestamp of the record found, in milliseconds since 1970; −1 where not known
 */
public record TimestampOffset(long offset, long timestamp) {
  /** No record is at or after the time. */
  public static final TimestampOffset NONE = new TimestampOffset(-1, -1);
}
