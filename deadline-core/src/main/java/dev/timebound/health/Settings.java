package dev.timebound.health;

import java.time.Duration;
import java.util.Objects;

/** Validation with one form of message: setting, value, expectation. */
final class Settings {
  /** 100 years, as with deadlines. */
  private static final Duration LONGEST = Duration.ofDays(36_500);

  private Settings() {}

  static IllegalArgumentException refused(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }

  static Duration positive(String setting, Duration value) {
    Objects.requireNonNull(value, setting);
    if (value.isZero() || value.isNegative()) {
      throw refused(setting, value, "> 0");
    }
    return bounded(value);
  }

  /**
   * Any length may be given; one that never passes in any case is cut, so that timers can tell it.
   */
  private static Duration bounded(Duration value) {
    return value.compareTo(LONGEST) > 0 ? LONGEST : value;
  }

  static Duration atLeast(String setting, Duration value, Duration least) {
    Objects.requireNonNull(value, setting);
    if (value.compareTo(least) < 0) {
      throw refused(setting, value, ">= " + least);
    }
    return bounded(value);
  }

  static int atLeast(String setting, int value, int least) {
    if (value < least) {
      throw refused(setting, value, ">= " + least);
    }
    return value;
  }

  static String name(String setting, String value) {
    Objects.requireNonNull(value, setting);
    if (value.isBlank()) {
      throw refused(setting, "'" + value + "'", "not blank");
    }
    return value;
  }
}
