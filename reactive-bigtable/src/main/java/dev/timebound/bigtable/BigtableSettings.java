package dev.timebound.bigtable;

import io.github.resilience4j.core.IntervalFunction;
import java.time.Duration;
import reactor.core.scheduler.Scheduler;

/** The client's settings, validated by {@link BigtableClientBuilder}. */
record BigtableSettings(
    String projectId,
    String instanceId,
    String appProfileId,
    Duration gapTimeout,
    int maxAttempts,
    Duration headersTimeout,
    Duration initialBackoff,
    Duration maxBackoff,
    Scheduler scheduler) {

  /** How often without progress a server may put an attempt off that does not count. (BT-38) */
  static final int MAX_TOLD_RETRIES = 10;

  /** Nanoseconds of a length of time that may be any; the longest there are where it has more. */
  static long nanos(Duration length) {
    try {
      return length.toNanos();
    } catch (ArithmeticException tooLong) {
      return length.isNegative() ? Long.MIN_VALUE : Long.MAX_VALUE;
    }
  }

  String instanceName() {
    return "projects/" + projectId + "/instances/" + instanceId;
  }

  String tableName(String tableId) {
    return instanceName() + "/tables/" + tableId;
  }

  /**
   * The pause before a retry by the number of the attempt that failed, in milliseconds: growing,
   * jittered. (BT-34)
   */
  IntervalFunction backoff() {
    return IntervalFunction.ofExponentialRandomBackoff(initialBackoff, 2.0, 0.5, maxBackoff);
  }

  /** The last attempt has no gap timeout; with a single one that is every attempt. (BT-33) */
  boolean retries() {
    return maxAttempts > 1;
  }
}
