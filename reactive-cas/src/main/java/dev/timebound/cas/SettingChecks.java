package dev.timebound.cas;

import java.time.Duration;
import java.util.Objects;

/** What the builder's settings have in common; each refusal names setting, value, expectation. */
final class SettingChecks {
  /** 100 years, as with deadlines. */
  private static final Duration LONGEST = Duration.ofDays(36_500);

  private SettingChecks() {}

  static Duration positive(String setting, Duration value) {
    Objects.requireNonNull(value, setting);
    if (value.isZero() || value.isNegative()) {
      throw invalid(setting, value, "> 0");
    }
    return bounded(value);
  }

  /** One that never passes in any case is cut, so that timers can tell it. */
  static Duration bounded(Duration value) {
    return value.compareTo(LONGEST) > 0 ? LONGEST : value;
  }

  static IllegalArgumentException invalid(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }
}
