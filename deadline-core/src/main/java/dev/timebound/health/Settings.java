package dev.timebound.health;

import java.time.Duration;
import java.util.Objects;

/** Validation with one form of message: setting, value, expectation. */
final class Settings {
  private Settings() {}

  static IllegalArgumentException refused(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }

  static Duration positive(String setting, Duration value) {
    Objects.requireNonNull(value, setting);
    if (value.isZero() || value.isNegative()) {
      throw refused(setting, value, "> 0");
    }
    return value;
  }

  static Duration atLeast(String setting, Duration value, Duration least) {
    Objects.requireNonNull(value, setting);
    if (value.compareTo(least) < 0) {
      throw refused(setting, value, ">= " + least);
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
    Objects.requireNonNull(value, setting);
    if (value.isBlank()) {
      throw refused(setting, "'" + value + "'", "not blank");
    }
    return value;
  }
}
