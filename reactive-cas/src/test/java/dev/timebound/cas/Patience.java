package dev.timebound.cas;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Waiting for a condition, with an outer bound that only a broken build meets. */
public final class Patience {
  public static final Duration LONG = Duration.ofSeconds(20);

  private Patience() {}

  /** So long that a machine that has something to do would have done a part of it. */
  public static void rest() {
    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(200));
  }

  public static void until(String what, BooleanSupplier condition) {
    long end = System.nanoTime() + LONG.toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime() - end).as("waiting until %s", what).isNegative();
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
    }
  }
}
