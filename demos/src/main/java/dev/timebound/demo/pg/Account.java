package dev.timebound.demo.pg;

import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAccumulator;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;
import org.jspecify.annotations.Nullable;

/**
 * Adds up what the reads and writes of a load came to: errors and freshness from the first one on,
 * the rest for those that were to begin after {@link #measure} only. Times are nanoseconds of one
 * clock. Thread-safe.
 */
final class Account {
  private static final long LARGEST_MICROS = TimeUnit.MINUTES.toMicros(10);
  private static final int DIGITS = 3;

  /** For the servers' clock and ours are not asked at the same moment. */
  private static final long SLACK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final long stalenessNanos;
  private final Histogram latency = new ConcurrentHistogram(1, LARGEST_MICROS, DIGITS);
  private final Recorder recent = new Recorder(1, LARGEST_MICROS, DIGITS);
  private final LongAdder reads = new LongAdder();
  private final LongAdder errors = new LongAdder();
  private final LongAdder overThree = new LongAdder();
  private final LongAdder byReader = new LongAdder();
  private final LongAdder byWriter = new LongAdder();
  private final LongAdder left = new LongAdder();
  private final LongAdder stale = new LongAdder();
  private final LongAdder writes = new LongAdder();
  private final LongAdder writeErrors = new LongAdder();
  private final LongAccumulator slowestWrite = new LongAccumulator(Math::max, 0);
  private final ConcurrentSkipListMap<Long, Long> committed = new ConcurrentSkipListMap<>();
  private final AtomicReference<@Nullable Throwable> firstError = new AtomicReference<>();
  private volatile @Nullable Back back;
  private volatile boolean measuring;

  /**
   * @param stalenessNanos how old an answer may be
   */
  Account(long stalenessNanos) {
    this.stalenessNanos = stalenessNanos;
  }

  void measure() {
    measuring = true;
  }

  boolean isMeasuring() {
    return measuring;
  }

  /** From now on, told whether reads are back on the reader. */
  void watch(Back watched) {
    back = watched;
  }

  void readBegun(boolean measured) {
    if (measured) {
      reads.increment();
    }
  }

  void readAnswered(boolean measured, long began, long now, Answer answer) {
    ended(measured, began, now, answer.byReader());
    if (measured) {
      (answer.byReader() ? byReader : byWriter).increment();
    }
    Map.Entry<Long, Long> due = committed.floorEntry(began - stalenessNanos - SLACK_NANOS);
    if (due != null && answer.pulse() < due.getValue()) {
      stale.increment();
    }
  }

  void readFailed(boolean measured, long began, long now, Throwable error) {
    ended(measured, began, now, false);
    errors.increment();
    firstError.compareAndSet(null, error);
  }

  private void ended(boolean measured, long began, long now, boolean onReader) {
    Back watched = back;
    if (watched != null) {
      watched.ended(began, now, onReader);
    }
    long nanos = now - began;
    long micros = Math.min(LARGEST_MICROS, Math.max(1, TimeUnit.NANOSECONDS.toMicros(nanos)));
    recent.recordValue(micros);
    if (measured) {
      latency.recordValue(micros);
      if (nanos > TimeUnit.SECONDS.toNanos(3)) {
        overThree.increment();
      }
    }
  }

  void readLeft(boolean measured) {
    if (measured) {
      left.increment();
    }
  }

  /** A write is committed, and known to be. */
  void written(boolean measured, long began, long now, long pulse) {
    committed.merge(now, pulse, Math::max);
    if (measured) {
      writes.increment();
      slowestWrite.accumulate(now - began);
    }
  }

  void writeFailed(boolean measured, long began, long now, Throwable error) {
    writeErrors.increment();
    firstError.compareAndSet(null, error);
    if (measured) {
      slowestWrite.accumulate(now - began);
    }
  }

  /** The reads that ended since this was last asked. */
  Histogram recent() {
    return recent.getIntervalHistogram();
  }

  Figures figures() {
    Histogram all = latency.copy();
    Throwable error = firstError.get();
    return new Figures(
        reads.sum(),
        errors.sum(),
        all.getValueAtPercentile(50) / 1e3,
        all.getValueAtPercentile(99) / 1e3,
        // up, never down: a read of 3.0004 s is longer than 3 s
        (all.getMaxValue() + 999) / 1_000,
        overThree.sum(),
        byReader.sum(),
        byWriter.sum(),
        left.sum(),
        stale.sum(),
        writes.sum(),
        writeErrors.sum(),
        TimeUnit.NANOSECONDS.toMillis(slowestWrite.get() + 999_999),
        error == null ? "" : error.toString());
  }
}
