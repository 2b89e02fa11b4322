package dev.timebound.pg;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * When a reader that cannot be dialled is dialled again for the pool's floor (after 250 ms, 500 ms,
 * 1 s …, at most 10 s), and what the log says of it: the first failure and the recovery, and once a
 * minute that it lasts. (PG-1, PG-2) Its owner guards it.
 */
final class Redial {
  private static final Logger LOG = LoggerFactory.getLogger(ReaderPool.class);

  static final Duration FIRST = Duration.ofMillis(250);
  static final Duration LONGEST = Duration.ofSeconds(10);
  private static final long SAY_EVERY = TimeUnit.MINUTES.toNanos(1);

  private final String reader;
  private Duration next = FIRST;
  private boolean waiting;
  private int failures;
  private long saidAt;

  Redial(String reader) {
    this.reader = reader;
  }

  /** Whether the floor's next dial is to wait for the timer. */
  boolean isWaiting() {
    return waiting;
  }

  /**
   * A dial failed.
   *
   * @return when the timer is to ring; zero where one is under way
   */
  Duration failed(Throwable cause, long now) {
    failures++;
    if (failures == 1) {
      saidAt = now;
      LOG.warn("reader {}: no connection: {}; its reads go elsewhere", reader, told(cause));
    } else if (now - saidAt >= SAY_EVERY) {
      saidAt = now;
      LOG.warn(
          "reader {}: still no connection, {} dials failed: {}", reader, failures, told(cause));
    }
    if (waiting) {
      return Duration.ZERO;
    }
    waiting = true;
    Duration delay = next;
    next = delay.compareTo(LONGEST.dividedBy(2)) > 0 ? LONGEST : delay.multipliedBy(2);
    return delay;
  }

  /** The timer rang. */
  void rang() {
    waiting = false;
  }

  /** A dial succeeded. */
  void succeeded() {
    if (failures > 0) {
      LOG.info("reader {}: dialled again after {} failures", reader, failures);
    }
    failures = 0;
    next = FIRST;
  }

  private static String told(Throwable cause) {
    return cause.getCause() == null ? cause.toString() : cause + " (" + cause.getCause() + ")";
  }
}
