package dev.timebound.pg;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Validation with one form of message: setting, value, expectation. */
final class Settings {
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
    if (value.isZero() || value.isNegative()) {
      throw refused(setting, value, "> 0");
    }
    return value;
  }

  static Duration notNegative(String setting, Duration value) {
    if (value.isNegative()) {
      throw refused(setting, value, ">= 0");
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
    if (value.isBlank()) {
      throw refused(setting, "'" + value + "'", "not blank");
    }
    return value;
  }
}
