package dev.timebound.samples.kafka;

import java.util.function.BooleanSupplier;

/** Waits for a condition. */
final class Until {
  private Until() {}

  static void holds(BooleanSupplier condition) {
    long ends = System.nanoTime() + Clients.PATIENCE.toNanos();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - ends > 0) {
        throw new AssertionError("it did not come true");
      }
      try {
        Thread.sleep(5);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
