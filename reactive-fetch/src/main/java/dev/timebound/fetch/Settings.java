package dev.timebound.fetch;

import java.time.Duration;
import java.util.Objects;

/** Validation with one form of message: setting, value, expectation. */
final class Settings {
  /** Past it a time does not fit the clocks' nanoseconds; it is as good as for ever. */
  private static final Duration MOST = Duration.ofDays(36_500);

  private Settings() {}

  static IllegalArgumentException refused(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }

  static Duration positive(String setting, Duration value) {
    if (Objects.requireNonNull(value, setting).isZero() || value.isNegative()) {
      throw refused(setting, value, "> 0");
    }
    return bounded(setting, value);
  }

  static Duration notNegative(String setting, Duration value) {
    if (Objects.requireNonNull(value, setting).isNegative()) {
      throw refused(setting, value, ">= 0");
    }
    return bounded(setting, value);
  }

  static Duration atLeast(String setting, Duration value, Duration least) {
    if (Objects.requireNonNull(value, setting).compareTo(least) < 0) {
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
    if (Objects.requireNonNull(value, setting).isBlank()) {
      throw refused(setting, "'" + value + "'", "not blank");
    }
    return value;
  }
}
