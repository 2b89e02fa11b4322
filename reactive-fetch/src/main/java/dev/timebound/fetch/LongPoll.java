package dev.timebound.fetch;

import java.util.concurrent.TimeUnit;

/**
 * When a request that waits for min_bytes goes round again, cuts what runs, and answers (FE-8,
 * FE-9). Times in nanoseconds from the start of the request. No clock, no timer; of one thread,
 * save where it is said.
 */
final class LongPoll {
  static final long FIRST_PAUSE = TimeUnit.MILLISECONDS.toNanos(10);

  private static final long NEVER = Long.MAX_VALUE;

  private final Shares shares;
  private final ByteBudget bytes;
  private final boolean together;
  private final long grace;
  private final long longestPause;

  private volatile long satisfiedAt = NEVER;

  /** The wait ended with something read that was not enough: no grace for what runs. */
  private boolean atEndOfWait;

  /** The wait ended with nothing read: the answer is held for the first that comes (FE-24). */
  private boolean held;

  private boolean limited;
  private boolean error;
  private long pause;
  private long pauseAt = NEVER;

  /**
   * @param together the policy reads partitions at the same time
   */
  LongPoll(Shares shares, ByteBudget bytes, boolean together, long grace) {
    this.shares = shares;
    this.bytes = bytes;
    this.together = together;
    this.grace = grace;
    this.longestPause = Math.max(1, shares.maxWait() / 4);
    this.pause = Math.min(FIRST_PAUSE, longestPause);
  }

  boolean together() {
    return together;
  }

  long grace() {
    return grace;
  }

  /** Whether there may be a second round at all. */
  boolean waits() {
    return shares.endOfWait() > 0 && !bytes.enough();
  }

  /** A partition has an error that its client must hear of: no more rounds. */
  void error() {
    error = true;
  }

  /** A partition, or the request, can bring no more by its limits: min_bytes may never come. */
  void limited() {
    limited = true;
  }

  /** Looks whether what was read is enough by now, for the reads that run at the same time. */
  void judge(long now) {
    if (satisfiedAt != NEVER) {
      return;
    }
    boolean some = bytes.accepted() > 0;
    if (limited || some && bytes.enough()) {
      satisfiedAt = now;
    } else if (now >= shares.endOfWait()) {
      if (some) {
        atEndOfWait = !held;
        satisfiedAt = now;
      } else {
        held = true;
      }
    }
  }

  /** Whether a batch that came just now may change what {@link #judge} says; from any thread. */
  boolean isWorthJudging(long now) {
    return satisfiedAt == NEVER && (bytes.enough() || now >= shares.endOfWait());
  }

  /** When a turn that began then is to end with what it has; Long.MAX_VALUE: not yet known. */
  long cutAt(long began, boolean heldBack) {
    long satisfied = satisfiedAt;
    if (satisfied == NEVER) {
      return NEVER;
    }
    boolean atOnce = heldBack || atEndOfWait && began < satisfied;
    return Math.max(satisfied, began) + (atOnce ? 0 : grace);
  }

  /** Whether a turn may begin now: no partition goes unasked (FE-14), but none is asked in vain. */
  boolean mayBegin(long now, boolean askedBefore, boolean heldBack) {
    if (!together) {
      return true;
    }
    if (satisfiedAt != NEVER) {
      return !askedBefore && !heldBack;
    }
    return !askedBefore || now < shares.endOfWait();
  }

  /** Whether the request is answered once no turn runs or is due. */
  boolean isOver(long now) {
    return limited || error || bytes.enough() || bytes.full() || now >= shares.endOfWait();
  }

  /** What ended it. */
  String outcome(long now) {
    if (bytes.enough()) {
      return "enough";
    }
    if (limited || bytes.full()) {
      return "limit";
    }
    return error || now < shares.endOfWait() ? "error" : "max_wait";
  }

  /** When partitions that nothing wakes are asked again; Long.MAX_VALUE: not in this request. */
  long nextPause(long now) {
    if (now >= shares.endOfWait()) {
      return NEVER;
    }
    if (pauseAt == NEVER) {
      pauseAt = now + pause;
      pause = Math.min(2 * pause, longestPause);
    }
    return pauseAt < shares.endOfWait() ? pauseAt : NEVER;
  }

  /** Whether a pause has passed; told once of each. */
  boolean pauseOver(long now) {
    if (pauseAt > now || now >= shares.endOfWait()) {
      return false;
    }
    pauseAt = NEVER;
    return true;
  }
}
