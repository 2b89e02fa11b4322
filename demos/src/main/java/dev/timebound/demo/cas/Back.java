package dev.timebound.demo.cas;

/**
 * When a shard served its own keys again after a fault: the end of the first of {@value #IN_A_ROW}
 * reads in a row, in the order of their ends, that began after the fault was over, of keys that it
 * alone holds. One stray answer is no return. Thread-safe.
 */
final class Back {
  static final int IN_A_ROW = 3;

  private final int shard;
  private final long since;
  private int run;
  private long runBegan;
  private long back = -1;

  /**
   * @param since when the fault was over, nanoseconds
   */
  Back(int shard, long since) {
    this.shard = shard;
    this.since = since;
  }

  int shard() {
    return shard;
  }

  long since() {
    return since;
  }

  /** A read of a key that its home alone holds has ended. */
  synchronized void ended(int home, long began, long now, boolean right) {
    if (home != shard || back >= 0 || began < since) {
      return;
    }
    if (!right) {
      run = 0;
      return;
    }
    if (run++ == 0) {
      runBegan = now;
    }
    if (run == IN_A_ROW) {
      back = runBegan - since;
    }
  }

  /** Milliseconds, rounded up; -1 where it has not come to that. */
  synchronized long millis() {
    return back < 0 ? -1 : (back + 999_999) / 1_000_000;
  }
}
