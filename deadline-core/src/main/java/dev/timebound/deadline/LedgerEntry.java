package dev.timebound.deadline;

import java.time.Duration;

/**
 * What one step of a request took (DL-5), as it appears in a log, a span's tag and the message of
 * {@link DeadlineExceededException}. An entry {@code (12 earlier)} is the sum of that many older
 * ones. Steps that ran side by side may add up to more than the request took.
 *
 * @param step who spent it, such as {@code bigtable.read-rows attempt 2}
 * @param nanos nanoseconds spent, never negative
 */
public record LedgerEntry(String step, long nanos) {
  /** The time spent. */
  public Duration spent() {
    return Duration.ofNanos(nanos);
  }

  /** Such as {@code pg.proof 12.3 ms}. */
  @Override
  public String toString() {
    return step + " " + Durations.text(nanos);
  }
}
