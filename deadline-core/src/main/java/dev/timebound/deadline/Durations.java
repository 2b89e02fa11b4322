package dev.timebound.deadline;

import java.time.Duration;
import java.util.Locale;

/** Durations as bounded nanoseconds and as text. */
final class Durations {
  private static final Duration MAX = Duration.ofNanos(Deadline.MAX_NANOS);
  private static final Duration MIN = MAX.negated();

  private Durations() {}

  /** Nanoseconds, bounded to 100 years in both directions. */
  static long nanos(Duration duration) {
    if (duration.compareTo(MAX) >= 0) {
      return Deadline.MAX_NANOS;
    }
    return duration.compareTo(MIN) <= 0 ? -Deadline.MAX_NANOS : duration.toNanos();
  }

  /** A length of time for people: {@code 1.204 s}, {@code 12.3 ms}, {@code 830 us}. */
  static String text(long nanos) {
    if (nanos < 0) {
      return "-" + text(nanos == Long.MIN_VALUE ? Long.MAX_VALUE : -nanos);
    }
    if (nanos >= 1_000_000_000L) {
      return decimals(nanos / 1_000_000, 1_000, "%.3f") + " s";
    }
    if (nanos >= 1_000_000L) {
      return decimals(nanos / 100_000, 10, "%.1f") + " ms";
    }
    return nanos / 1_000 + " us";
  }

  private static String decimals(long scaled, long unit, String format) {
    return scaled % unit == 0
        ? Long.toString(scaled / unit)
        : String.format(Locale.ROOT, format, (double) scaled / unit);
  }
}
