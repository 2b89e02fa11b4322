package dev.timebound.demo;

import java.util.concurrent.TimeUnit;

/** Keeps a run to its seconds. */
public final class Pace {
  private Pace() {}

  /** Returns at that moment of {@link System#nanoTime}; at once where it has passed. */
  public static void until(long due) throws InterruptedException {
    long left = due - System.nanoTime();
    if (left > 0) {
      TimeUnit.NANOSECONDS.sleep(left);
    }
  }
}
