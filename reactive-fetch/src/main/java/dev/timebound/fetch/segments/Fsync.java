package dev.timebound.fetch.segments;

import java.time.Duration;
import java.util.Objects;

/**
 * When what was appended is forced to the disk. A process that dies loses no append that returned,
 * whichever it is; they differ in what a machine that dies can lose. Immutable.
 */
public final class Fsync {
  private static final Fsync NEVER = new Fsync(false, Duration.ZERO);
  private static final Fsync EACH_APPEND = new Fsync(true, Duration.ZERO);

  private final boolean eachAppend;
  private final Duration every;

  private Fsync(boolean eachAppend, Duration every) {
    this.eachAppend = eachAppend;
    this.every = every;
  }

  /**
   * No append waits for the disk. A machine that dies loses what its system had not written yet, of
   * full segments too.
   */
  public static Fsync never() {
    return NEVER;
  }

  /**
   * An append returns, and readers see it, once it is on the disk; appends of a partition that wait
   * at the same time share one turn. A machine that dies loses nothing that returned.
   */
  public static Fsync eachAppend() {
    return EACH_APPEND;
  }

  /**
   * At most so long after an append; full segments before the next one begins. A machine that dies
   * loses that much of each partition's end.
   *
   * @param interval {@code > 0}
   */
  public static Fsync every(Duration interval) {
    if (Objects.requireNonNull(interval, "interval").isZero() || interval.isNegative()) {
      throw new IllegalArgumentException("fsync: " + interval + " (expected: > 0)");
    }
    return new Fsync(false, interval);
  }

  boolean isEachAppend() {
    return eachAppend;
  }

  boolean isNever() {
    return !eachAppend && every.isZero();
  }

  /** Zero where there is no interval. */
  Duration interval() {
    return every;
  }

  @Override
  public String toString() {
    return eachAppend ? "each append" : every.isZero() ? "never" : "every " + every;
  }
}
