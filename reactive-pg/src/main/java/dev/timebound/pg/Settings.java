package dev.timebound.pg;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Validation with one form of message: setting, value, expectation. */
final class Settings {
  /** Past it a time does not fit the clocks' nanoseconds; it is as good as for ever. */
  private static final Duration MOST = Duration.ofDays(36_500);

  private Settings() {}

  static IllegalArgumentException refused(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }

  /** As the SPI asks of its callers, who may not know of nullness. */
  static <T> T required(String what, @Nullable T value) {
    if (value == null) {
      throw refused(what, "null", "a value");
    }
    return value;
  }

  static Duration positive(String setting, Duration value) {
    if (required(setting, value).isZero() || value.isNegative()) {
      throw refused(setting, value, "> 0");
    }
    return bounded(setting, value);
  }

  static Duration notNegative(String setting, Duration value) {
    if (required(setting, value).isNegative()) {
      throw refused(setting, value, ">= 0");
    }
    return bounded(setting, value);
  }

  static Duration atLeast(String setting, Duration value, Duration least) {
    if (required(setting, value).compareTo(least) < 0) {
      throw refused(setting, value, ">= " + least);
    }
    return bounded(setting, value);
  }

  private static Duration bounded(String setting, Duration value) {
    if (value.compareTo(MOST) > 0) {
      throw refused(setting, value, "at most " + MOST);
    }
    return value;
  }

  static int atLeast(String setting, int value, int least) {
    if (value < least) {
      throw refused(setting, value, ">= " + least);
    }
    return value;
  }

  static String name(String setting, String value) {
    if (required(setting, value).isBlank()) {
      throw refused(setting, "'" + value + "'", "not blank");
    }
    return value;
  }
}
