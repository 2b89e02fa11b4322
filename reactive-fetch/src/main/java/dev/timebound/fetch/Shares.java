package dev.timebound.fetch;

import java.util.concurrent.TimeUnit;

/**
 * The arithmetic of one request's time (FE-1 to FE-4, FE-20), in nanoseconds from its start. No
 * clock, no timer, no state.
 *
 * @param maxWait what the client asked for; may lie beyond the deadline
 * @param deadline when the answer is due at the latest
 * @param leastBudget what a budget is by FE-3 at least, where the share allows it: a client that
 *     asks with a max_wait of 0 would otherwise never have anything read for it
 */
record Shares(SharePolicy policy, long maxWait, long deadline, long leastBudget) {
  /** A share under it gives no budget: it goes to the margin whole. (FE-3, FE-4) */
  static final long LEAST_MARGIN = TimeUnit.MILLISECONDS.toNanos(50);

  /** When the long poll ends. */
  long endOfWait() {
    return Math.min(maxWait, deadline);
  }

  /**
   * The share of a partition whose turn starts now.
   *
   * @param partitionsLeft of the round, over all topics, this one included
   * @param penalised it stalled lately and is not alone in its request: what reading it last would
   *     hand it is cut down (FE-20)
   */
  Share begin(long now, int partitionsLeft, boolean penalised) {
    long left = deadline - now;
    long cap =
        penalised
            ? Math.min(deadline, Math.max(Math.min(now + left / 2, maxWait), now + maxWait / 2))
            : now + policy.share(left, partitionsLeft);
    return new Share(now, cap, Math.max((cap - now) / 4, LEAST_MARGIN));
  }

  /**
   * Until when the store may assemble batches, taken once the offsets are there (FE-5); now or
   * before where there is no budget.
   */
  long budgetEnd(Share share, long now) {
    long wanted = Math.max(maxWait, now + Math.max(maxWait / 2, leastBudget));
    return Math.min(wanted, share.cap() - share.margin());
  }
}
