package dev.timebound.cas.kit;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Waiting for a condition with a bound, for tests' threads. */
final class Wait {
  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final long LOOK_EVERY = TimeUnit.MILLISECONDS.toNanos(1);

  private Wait() {}

  /**
   * @param seen what there is instead, for the message
   * @throws AssertionError when the condition does not hold within 30 s
   */
  static void until(String expected, BooleanSupplier condition, Supplier<String> seen) {
    long giveUp = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - giveUp > 0) {
        throw new AssertionError(
            "expected within " + PATIENCE + ": " + expected + "; but " + seen.get());
      }
      LockSupport.parkNanos(LOOK_EVERY);
      if (Thread.currentThread().isInterrupted()) {
        throw new AssertionError("interrupted while waiting until " + expected);
      }
    }
  }
}
