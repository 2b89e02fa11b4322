package dev.timebound.fetch;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import reactor.core.scheduler.Scheduler;

/**
 * Settings of a fetcher, validated by the builder that makes them.
 *
 * @param extraTime what a request's read deadline is beyond its max_wait (FE-1)
 * @param maxReadDeadline (FE-1)
 * @param listOffsetsDeadline (FE-16)
 * @param leastBudget of a request whose max_wait is shorter than twice that
 * @param grace under {@link SharePolicy#PARALLEL} (FE-9)
 * @param atOnce partitions read at the same time under it
 * @param most of them with those that take long
 * @param slowAfter when a read takes long
 * @param warnEvery of one partition (FE-23)
 * @param backgroundTime how long a read goes on that its request has abandoned (FE-24)
 * @param backgroundBytes how much of it is kept
 * @param scheduler clock and timers where the caller brings no deadline
 */
record FetchSettings(
    SharePolicy policy,
    Duration extraTime,
    Duration maxReadDeadline,
    Duration listOffsetsDeadline,
    Duration leastBudget,
    Duration grace,
    int atOnce,
    int most,
    Duration slowAfter,
    Duration warnEvery,
    Duration backgroundTime,
    int backgroundBytes,
    Scheduler scheduler) {

  /** On the clock of what outlives a request, in nanoseconds. */
  long now() {
    return scheduler.now(TimeUnit.NANOSECONDS);
  }

  Shares shares(Duration maxWait, long deadlineNanos) {
    return new Shares(policy, maxWait.toNanos(), deadlineNanos, leastBudget.toNanos());
  }

  Turns.Limits limits() {
    return policy == SharePolicy.PARALLEL
        ? new Turns.Limits(atOnce, most, slowAfter.toNanos())
        : Turns.Limits.ONE_BY_ONE;
  }
}
