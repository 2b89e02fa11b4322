package dev.timebound.cas;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.RetryBudget;
import io.github.resilience4j.core.IntervalFunction;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import reactor.core.scheduler.Scheduler;

/**
 * The ring's settings, validated by {@link CasRingBuilder}.
 *
 * @param rpcTimeout zero where there is none
 * @param retries attempts beyond the first without progress in between
 * @param writeChunkSize bytes of an upload's pieces
 * @param compression byte streams may travel compressed: it is wanted, and the library is there
 * @param connectionsPerEndpoint at most, where the server's streams run out
 * @param scheduler clock and timers; the callers' deadlines have their own
 */
record RingSettings(
    String name,
    DigestFunction digestFunction,
    Duration rpcTimeout,
    Duration gapTimeout,
    Duration connectTimeout,
    Duration keepAliveTime,
    Duration cooldown,
    boolean resumeMidStream,
    int retries,
    RetryBudget retryBudget,
    int writeChunkSize,
    boolean compression,
    int connectionsPerEndpoint,
    Scheduler scheduler) {

  private static final Duration LEAST_SHARE = Duration.ofMillis(20);
  private static final Duration FIRST_RETRY = Duration.ofMillis(20);
  private static final Duration LONGEST_RETRY = Duration.ofSeconds(1);
  private static final Duration FIRST_RECONNECT = Duration.ofMillis(500);
  private static final double GROWTH = 2.0;
  private static final double JITTER = 0.5;

  long now() {
    return scheduler.now(TimeUnit.NANOSECONDS);
  }

  /**
   * What one attempt may take (CAS-3, CAS-3a): rpcTimeout, or the caller's share where that is
   * less. The caller's own deadline, the same object, where nothing shortens it, or where a share
   * would be too short to say anything of a shard: one that is well must not become suspect for its
   * caller's haste (CAS-20a).
   *
   * @param candidatesLeft shards that may still be tried, this one included
   */
  AttemptLimit attemptLimit(Deadline caller, int candidatesLeft) {
    Deadline share = caller.share(candidatesLeft);
    if (share != caller && share.remaining().compareTo(LEAST_SHARE) < 0) {
      share = caller;
    }
    Deadline rpc = rpcTimeout.isZero() ? Deadline.none() : Deadline.after(rpcTimeout, scheduler);
    Deadline limit = share.earlier(rpc);
    String words =
        limit == rpc
            ? "rpcTimeout, " + rpcTimeout
            : "its share of the deadline, " + limit.remaining().toMillis() + " ms";
    return new AttemptLimit(limit, words);
  }

  /**
   * What one attempt may take.
   *
   * @param words which limit that is, and how long, as errors say it
   */
  record AttemptLimit(Deadline deadline, String words) {}

  /** The pause before a retry by its number from 1, in milliseconds. */
  static IntervalFunction retryBackoff() {
    return IntervalFunction.ofExponentialRandomBackoff(FIRST_RETRY, GROWTH, JITTER, LONGEST_RETRY);
  }

  /**
   * The pause before the next connect attempt by the number of those that failed, in milliseconds.
   * It grows no further than the cooldown, after which a trial connects anyway.
   */
  IntervalFunction reconnectBackoff() {
    Duration longest = cooldown.compareTo(FIRST_RECONNECT) < 0 ? FIRST_RECONNECT : cooldown;
    return IntervalFunction.ofExponentialRandomBackoff(FIRST_RECONNECT, GROWTH, JITTER, longest);
  }
}
