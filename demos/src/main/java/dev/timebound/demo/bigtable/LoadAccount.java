package dev.timebound.demo.bigtable;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAccumulator;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;
import org.jspecify.annotations.Nullable;

/**
 * Adds up what the reads of a load came to. Whether rows and answers are right is counted from the
 * first read on; time is counted for the reads that were to begin after {@link #measure} only.
 * Thread-safe.
 */
final class LoadAccount {
  private static final long LARGEST_MICROS = TimeUnit.MINUTES.toMicros(10);
  private static final int DIGITS = 3;

  private final Histogram latency = new ConcurrentHistogram(1, LARGEST_MICROS, DIGITS);
  private final Recorder recent = new Recorder(1, LARGEST_MICROS, DIGITS);
  private final LongAdder requests = new LongAdder();
  private final LongAdder errors = new LongAdder();
  private final LongAdder lost = new LongAdder();
  private final LongAdder doubled = new LongAdder();
  private final LongAdder wrong = new LongAdder();
  private final LongAdder rows = new LongAdder();
  private final LongAdder overOneSecond = new LongAdder();
  private final LongAccumulator silence = new LongAccumulator(Math::max, 0);
  private final AtomicReference<@Nullable Throwable> firstError = new AtomicReference<>();
  private volatile boolean measuring;

  /** The warm-up is over: time counts from here on. */
  void measure() {
    measuring = true;
  }

  boolean isMeasuring() {
    return measuring;
  }

  /** A read was begun. */
  void begun(boolean measured) {
    if (measured) {
      requests.increment();
    }
  }

  /** A point read or a short scan ended; {@code nanos} from the moment it should have begun. */
  void ended(boolean measured, long nanos) {
    long micros = Math.min(LARGEST_MICROS, Math.max(1, TimeUnit.NANOSECONDS.toMicros(nanos)));
    recent.recordValue(micros);
    if (measured) {
      latency.recordValue(micros);
      if (nanos > TimeUnit.SECONDS.toNanos(1)) {
        overOneSecond.increment();
      }
    }
  }

  /** A read failed, or never ended. */
  void failed(Throwable error) {
    errors.increment();
    firstError.compareAndSet(null, error);
  }

  /** What a read's rows came to; once a read, after its last signal. */
  void rows(RowCheck check) {
    rows.add(check.rows());
    lost.add(check.lost());
    doubled.add(check.doubled());
    wrong.add(check.wrong());
  }

  /** An open scan gave nothing for so long though its reader wanted rows. */
  void silence(long nanos) {
    if (measuring) {
      silence.accumulate(nanos);
    }
  }

  /** The reads that ended since this was last asked. */
  Histogram recent() {
    return recent.getIntervalHistogram();
  }

  LoadFigures figures() {
    Histogram all = latency.copy();
    Throwable error = firstError.get();
    return new LoadFigures(
        requests.sum(),
        errors.sum(),
        lost.sum(),
        doubled.sum(),
        wrong.sum(),
        all.getValueAtPercentile(50) / 1e3,
        all.getValueAtPercentile(99) / 1e3,
        all.getValueAtPercentile(99.9) / 1e3,
        overOneSecond.sum(),
        // up, never down: a read of 5.0004 s is longer than 5 s
        (all.getMaxValue() + 999) / 1_000,
        TimeUnit.NANOSECONDS.toMillis(silence.get() + 999_999),
        rows.sum(),
        error == null ? "" : error.toString());
  }
}
