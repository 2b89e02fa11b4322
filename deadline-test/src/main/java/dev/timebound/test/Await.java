package dev.timebound.test;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Waiting for a condition with a bound, for tests' threads. */
final class Await {
  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final long LOOK_EVERY = TimeUnit.MILLISECONDS.toNanos(1);

  private Await() {}

  /**
   * @param seen what there is instead, for the message
   * @throws AssertionError when the condition does not hold within 30 s
   */
  static void until(String expected, BooleanSupplier condition, Supplier<String> seen) {
    until(expected, condition, seen, PATIENCE);
  }

  static void until(
      String expected, BooleanSupplier condition, Supplier<String> seen, Duration patience) {
    long giveUp = System.nanoTime() + patience.toNanos();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - giveUp > 0) {
        throw new AssertionError(
            "expected within " + patience + ": " + expected + "; but " + seen.get());
      }
      LockSupport.parkNanos(LOOK_EVERY);
      if (Thread.currentThread().isInterrupted()) {
        throw new AssertionError("interrupted while waiting until " + expected);
      }
    }
  }
}
