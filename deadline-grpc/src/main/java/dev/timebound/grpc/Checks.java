package dev.timebound.grpc;

import java.time.Duration;
import java.util.Objects;

/** What the builder refuses, with the setting, the value and what was expected. */
final class Checks {
  /** 100 years, as with deadlines. */
  private static final Duration LONGEST = Duration.ofDays(36_500);

  private Checks() {}

  static int atLeast(String setting, int value, int least) {
    if (value < least) {
      throw invalid(setting, value, ">= " + least);
    }
    return value;
  }

  static Duration atLeast(String setting, Duration value, Duration least) {
    Objects.requireNonNull(value, setting);
    if (value.compareTo(least) < 0) {
      throw invalid(setting, value, ">= " + least);
    }
    return bounded(value);
  }

  static Duration positive(String setting, Duration value) {
    Objects.requireNonNull(value, setting);
    if (value.isZero() || value.isNegative()) {
      throw invalid(setting, value, "> 0");
    }
    return bounded(value);
  }

  /**
   * Any length may be given; one that never passes in any case is cut, so that timers can tell it.
   */
  static Duration bounded(Duration value) {
    return value.compareTo(LONGEST) > 0 ? LONGEST : value;
  }

  static IllegalArgumentException invalid(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }
}
