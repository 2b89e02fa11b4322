package dev.timebound.demo.pg;

/**
 * When reads were back on the reader after a fault: the end of the first of {@value #IN_A_ROW} in a
 * row, in the order of their ends, that began after the fault was over and that the reader served.
 * One stray answer is no return. Thread-safe.
 */
final class Back {
  static final int IN_A_ROW = 20;

  private final long since;
  private int run;
  private long runBegan;
  private long back = -1;

  /**
   * @param since when the fault was over, nanoseconds
   */
  Back(long since) {
    this.since = since;
  }

  /** A read ended; {@code byReader} false also where it failed. */
  synchronized void ended(long began, long now, boolean byReader) {
    if (back >= 0 || began < since) {
      return;
    }
    if (!byReader) {
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
