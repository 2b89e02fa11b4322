package dev.timebound.deadline;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** How a header tells a length of time ({@link DeadlineHeaders}). */
public enum TimeoutUnit {
  /** As {@code grpc-timeout} does: up to 8 digits and a letter, H, M, S, m, u or n. */
  GRPC("up to 8 digits and one of H M S m u n"),
  /** Seconds, such as {@code 2} or {@code 0.75}. */
  SECONDS("seconds, such as 2 or 0.75"),
  /** Milliseconds, such as {@code 750}. */
  MILLISECONDS("milliseconds, such as 750");

  private static final Pattern GRPC_TIMEOUT = Pattern.compile("(\\d{1,8})([HMSmun])");

  /** No sign, no exponent, and no more digits than a length of time can need. */
  private static final Pattern DECIMAL = Pattern.compile("\\d{1,18}(?:\\.\\d{1,9})?");

  /** What 8 digits do not hold any more. */
  private static final long NINE_DIGITS = 100_000_000;

  private final String form;

  TimeoutUnit(String form) {
    this.form = form;
  }

  /** What is expected, for people. */
  String form() {
    return form;
  }

  /** Null where it is malformed; never more than 100 years. */
  @Nullable Duration parse(String value) {
    String text = value.strip();
    return switch (this) {
      case GRPC -> grpc(text);
      case SECONDS -> decimal(text, 9);
      case MILLISECONDS -> decimal(text, 6);
    };
  }

  /** Rounded down; null where that leaves nothing. */
  @Nullable String format(long nanos) {
    long millis = TimeUnit.NANOSECONDS.toMillis(nanos);
    return switch (this) {
      case GRPC -> grpc(nanos);
      case SECONDS ->
          millis <= 0 ? null : BigDecimal.valueOf(millis, 3).stripTrailingZeros().toPlainString();
      case MILLISECONDS -> millis <= 0 ? null : Long.toString(millis);
    };
  }

  private static @Nullable Duration decimal(String text, int nanoDigits) {
    if (!DECIMAL.matcher(text).matches()) {
      return null;
    }
    BigDecimal nanos = new BigDecimal(text).movePointRight(nanoDigits);
    BigDecimal most = BigDecimal.valueOf(Deadline.MAX_NANOS);
    return Duration.ofNanos(nanos.min(most).longValue());
  }

  private static @Nullable Duration grpc(String text) {
    Matcher matcher = GRPC_TIMEOUT.matcher(text);
    if (!matcher.matches()) {
      return null;
    }
    long amount = Long.parseLong(matcher.group(1));
    TimeUnit unit =
        switch (matcher.group(2)) {
          case "H" -> TimeUnit.HOURS;
          case "M" -> TimeUnit.MINUTES;
          case "S" -> TimeUnit.SECONDS;
          case "m" -> TimeUnit.MILLISECONDS;
          case "u" -> TimeUnit.MICROSECONDS;
          default -> TimeUnit.NANOSECONDS;
        };
    return Duration.ofNanos(Math.min(unit.toNanos(amount), Deadline.MAX_NANOS));
  }

  private static @Nullable String grpc(long nanos) {
    if (nanos <= 0) {
      return null;
    }
    if (nanos < NINE_DIGITS) {
      return nanos + "n";
    }
    if (nanos / 1_000 < NINE_DIGITS) {
      return nanos / 1_000 + "u";
    }
    if (nanos / 1_000_000 < NINE_DIGITS) {
      return nanos / 1_000_000 + "m";
    }
    long seconds = nanos / 1_000_000_000L; // 100 years have 10 digits of them
    return seconds < NINE_DIGITS ? seconds + "S" : seconds / 60 + "M";
  }
}
