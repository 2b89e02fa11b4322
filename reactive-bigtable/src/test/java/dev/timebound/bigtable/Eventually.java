package dev.timebound.bigtable;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/** Waits for a condition: looks again until it holds, with a bound that only a failure reaches. */
final class Eventually {
  private Eventually() {}

  static void eventually(Runnable assertion) {
    long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
    while (true) {
      try {
        assertion.run();
        return;
      } catch (AssertionError e) {
        if (System.nanoTime() > end) {
          throw e;
        }
        LockSupport.parkNanos(5_000_000);
      }
    }
  }
}
