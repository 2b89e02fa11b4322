package dev.timebound.demo.cas;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.SynchronizedHistogram;

/**
 * What a frozen shard costs the reads of mirrored blobs that it is home to: which of them waited
 * for it, and how much later the first byte of a small one comes once the shard is known to be bad.
 * Thread-safe.
 */
final class Frost {
  /** For a machine whose timers are late. */
  private static final Duration SLACK = Duration.ofMillis(500);

  private static final long LARGEST_MICROS = TimeUnit.MINUTES.toMicros(10);
  private static final int DIGITS = 3;

  private final int shard;
  private final Histogram before = new SynchronizedHistogram(1, LARGEST_MICROS, DIGITS);
  private final Histogram during = new SynchronizedHistogram(1, LARGEST_MICROS, DIGITS);
  private boolean measuring;
  private boolean over;
  private long frozenAt;
  private long thawedAt;
  private int early;
  private int late;

  Frost(int shard) {
    this.shard = shard;
  }

  synchronized void measure() {
    measuring = true;
  }

  /** Another shard is down: what is read now tells nothing of this one's healthy days. */
  synchronized void pause() {
    measuring = false;
  }

  synchronized void frozen(long now) {
    measuring = false;
    frozenAt = now;
  }

  synchronized void thawed(long now) {
    over = true;
    thawedAt = now;
  }

  /**
   * A read of a mirrored blob has its first byte, or has failed.
   *
   * @param time what it had, of which its first shard gets half
   */
  synchronized void firstByte(Blob blob, Duration time, long began, long first) {
    if (blob.home() != shard) {
      return;
    }
    long micros =
        Math.min(LARGEST_MICROS, Math.max(1, TimeUnit.NANOSECONDS.toMicros(first - began)));
    boolean small = blob.size() <= Blobs.SMALL;
    if (frozenAt == 0) {
      if (measuring && small) {
        before.recordValue(micros);
      }
      return;
    }
    if ((over && began > thawedAt) || first < frozenAt) {
      return;
    }
    long shareNanos = time.toNanos() / 2;
    // one that waited out most of a first shard's share waited for the frozen one
    boolean waited = first - began > shareNanos * 8 / 10;
    boolean known = began > frozenAt + shareNanos + SLACK.toNanos();
    if (waited) {
      if (known) {
        late++;
      } else {
        early++;
      }
    } else if (known && small && !over) {
      during.recordValue(micros);
    }
  }

  /** Reads that waited for it, begun before it had to be known: when it froze, and just after. */
  synchronized int early() {
    return early;
  }

  /** Reads that waited for it though it had to be known: its trials. */
  synchronized int late() {
    return late;
  }

  /** How much later the median first byte came; -1 where there was none. */
  synchronized double addedMillis() {
    if (before.getTotalCount() == 0 || during.getTotalCount() == 0) {
      return -1;
    }
    return Math.max(0, (during.getValueAtPercentile(50) - before.getValueAtPercentile(50)) / 1e3);
  }
}
