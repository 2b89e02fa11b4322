package dev.timebound.cas;

/**
 * How long calls have waited on one connection on which nothing came in: the time of those that
 * were given up, each moment counted once. Time in which nobody waited is no silence.
 */
final class Silence {
  private final long patience;

  /** Since it was last looked at; raised for each piece that comes in, so it is kept cheap. */
  private volatile boolean ended;

  // guarded by this
  private long waited;
  private long countedUpTo = Long.MIN_VALUE;

  /**
   * @param patience in nanoseconds
   */
  Silence(long patience) {
    this.patience = patience;
  }

  void ended() {
    if (!ended) {
      ended = true;
    }
  }

  /** A call begins to wait: what came in before is no sign for it. */
  void begins(long now) {
    if (ended) {
      begunAnew(now);
    }
  }

  private synchronized void begunAnew(long now) {
    ended = false;
    waited = 0;
    countedUpTo = now;
  }

  /**
   * A call has waited in vain.
   *
   * @return whether that makes it too long; it is counted from 0 again then
   */
  synchronized boolean lasts(long since, long now) {
    if (ended) {
      begunAnew(now); // in the midst of that call: how long it has waited after that is not known
      return false;
    }
    waited += Math.max(0, now - Math.max(since, countedUpTo));
    countedUpTo = now;
    if (waited < patience) {
      return false;
    }
    waited = 0;
    return true;
  }
}
