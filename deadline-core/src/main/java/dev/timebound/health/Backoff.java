package dev.timebound.health;

import io.github.resilience4j.core.IntervalFunction;
import java.time.Duration;

/**
 * How long from one probe of a member to its next. The jitter is a function of the seed, the member
 * and the probe's number: the same run gives the same times.
 */
final class Backoff {
  private static final double JITTER = 0.2;

  private final IntervalFunction interval;
  private final double ceilingMillis;
  private final long seed;

  Backoff(Duration first, Duration max, long seed) {
    long firstMillis = first.toMillis();
    this.interval =
        first.equals(max)
            ? IntervalFunction.of(firstMillis)
            : IntervalFunction.ofExponentialBackoff(firstMillis, 2.0, max.toMillis());
    this.ceilingMillis = max.toMillis() / (1 + JITTER);
    this.seed = seed;
  }

  /**
   * @param attempt how many have counted, 0 as 1
   */
  long nanos(int attempt, int member, int probe) {
    double base = Math.min(interval.apply(Math.max(1, Math.min(attempt, 32))), ceilingMillis);
    double jitter = Mix.unit(seed ^ ((long) member << 32 | probe)) * JITTER;
    return (long) (base * (1 + jitter) * 1_000_000);
  }
}
