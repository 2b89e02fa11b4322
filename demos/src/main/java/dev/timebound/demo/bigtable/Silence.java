package dev.timebound.demo.bigtable;

/**
 * Times how long an open scan gives nothing while its reader wants rows: from the moment it asked,
 * or from the last row, whichever was later. A reader that wants nothing is never kept waiting.
 * Thread-safe; all moments are nanoseconds of one clock.
 */
final class Silence {
  private long wanted;
  private long since;

  /** The reader wants {@code rows} more. */
  synchronized void asked(long rows, long now) {
    if (wanted == 0) {
      since = now;
    }
    wanted += rows;
  }

  /** A row came: how long it was waited for. */
  synchronized long row(long now) {
    if (wanted == 0) {
      return 0;
    }
    long waited = now - since;
    wanted--;
    since = now;
    return waited;
  }

  /** The scan ended, well or not, and gives no more rows: how long this was waited for. */
  synchronized long ended(long now) {
    long waited = wanted == 0 ? 0 : now - since;
    wanted = 0;
    return waited;
  }

  /** How long the reader has waited by now. */
  synchronized long current(long now) {
    return wanted == 0 ? 0 : now - since;
  }

  /** How many rows the reader still waits for. */
  synchronized long wanted() {
    return wanted;
  }
}
