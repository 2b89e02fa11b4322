package dev.timebound.fetch;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** Waits for a condition, with a bound that only a broken build reaches. */
public final class Eventually {
  private static final Duration BOUND = Duration.ofSeconds(30);

  private Eventually() {}

  public static void eventually(ThrowingCallable assertion) {
    long end = System.nanoTime() + BOUND.toNanos();
    for (; ; ) {
      try {
        assertion.call();
        return;
      } catch (Throwable e) {
        if (System.nanoTime() - end > 0) {
          throw new AssertionError("not within " + BOUND + ": " + e.getMessage(), e);
        }
        LockSupport.parkNanos(5_000_000);
      }
    }
  }
}
