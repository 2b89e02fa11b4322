package dev.timebound.fetch.segments;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** What a store must not leave behind. */
final class Left {
  private static final long BOUND_NANOS = 60_000_000_000L;

  private Left() {}

  private static long threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("timebound-segments-"))
        .count();
  }

  static void noThread() {
    until(() -> threads() == 0);
  }

  /** Waits for a condition. */
  static void until(BooleanSupplier condition) {
    long end = System.nanoTime() + BOUND_NANOS;
    while (!condition.getAsBoolean() && System.nanoTime() - end < 0) {
      LockSupport.parkNanos(5_000_000);
    }
    assertThat(condition.getAsBoolean()).as("it came true").isTrue();
  }
}
