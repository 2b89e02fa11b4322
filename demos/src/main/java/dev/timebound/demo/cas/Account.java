package dev.timebound.demo.cas;

import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;
import org.jspecify.annotations.Nullable;

/**
 * Adds up what the calls of a load came to: what is wrong from the first one on, the rest for those
 * begun after {@link #measure} only. Times are nanoseconds of {@link System#nanoTime}. Thread-safe.
 */
final class Account {
  private static final long LARGEST_MICROS = TimeUnit.MINUTES.toMicros(10);
  private static final int DIGITS = 3;

  private final Frost frost;
  private final Histogram latency = new ConcurrentHistogram(1, LARGEST_MICROS, DIGITS);
  private final Recorder recent = new Recorder(1, LARGEST_MICROS, DIGITS);
  private final LongAdder calls = new LongAdder();
  private final LongAdder unanswered = new LongAdder();
  private final LongAdder wrong = new LongAdder();
  private final LongAdder falseMissing = new LongAdder();
  private final LongAdder failedMirrored = new LongAdder();
  private final LongAdder mirrored = new LongAdder();
  private final LongAdder unknownKeys = new LongAdder();
  private final Map<String, LongAdder> errors = new ConcurrentHashMap<>();
  private final AtomicReference<@Nullable Throwable> firstUnexpected = new AtomicReference<>();
  private volatile @Nullable Back back;
  private volatile boolean measuring;

  Account(Frost frost) {
    this.frost = frost;
  }

  void measure() {
    measuring = true;
  }

  boolean isMeasuring() {
    return measuring;
  }

  /** From now on, told whether that shard serves its own keys. */
  void watch(Back watched) {
    back = watched;
  }

  void begun(boolean measured) {
    if (measured) {
      calls.increment();
    }
  }

  void readEnded(
      Blob blob,
      boolean measured,
      Duration time,
      long began,
      long firstByte,
      long now,
      boolean right) {
    ended(measured, began, now);
    if (!right) {
      wrong.increment();
    }
    if (blob.mirrored()) {
      mirrored.increment();
      frost.firstByte(blob, time, began, firstByte == 0 ? now : firstByte);
    } else {
      ownKey(blob, began, now, right);
    }
  }

  void readFailed(
      Blob blob, boolean measured, Duration time, long began, long now, Throwable error) {
    failed(measured, began, now, error);
    if (isMissing(error)) {
      falseMissing.increment();
    }
    if (blob.mirrored()) {
      mirrored.increment();
      failedMirrored.increment();
      frost.firstByte(blob, time, began, now);
      firstUnexpected.compareAndSet(null, error);
    } else {
      ownKey(blob, began, now, false);
    }
  }

  private void ownKey(Blob blob, long began, long now, boolean right) {
    Back watched = back;
    if (watched != null) {
      watched.ended(blob.home(), began, now, right);
    }
  }

  /**
   * @param falselyMissing keys said to be missing that are there
   * @param falselyPresent keys said to be there that are not
   */
  void checkEnded(
      boolean measured, long began, long now, int falselyMissing, int falselyPresent, int unknown) {
    ended(measured, began, now);
    falseMissing.add(falselyMissing);
    wrong.add(falselyPresent);
    unknownKeys.add(unknown);
  }

  void writeEnded(boolean measured, long began, long now) {
    ended(measured, began, now);
  }

  /** A check or a write has failed. */
  void failed(boolean measured, long began, long now, Throwable error) {
    ended(measured, began, now);
    errors.computeIfAbsent(status(error), any -> new LongAdder()).increment();
  }

  /** Not answered when it was given up, long after its deadline. */
  void unanswered(boolean measured, @Nullable Blob blob, Duration time, long began, long now) {
    ended(measured, began, now);
    unanswered.increment();
    if (blob != null && blob.mirrored()) {
      mirrored.increment();
      failedMirrored.increment();
      frost.firstByte(blob, time, began, now);
    } else if (blob != null) {
      ownKey(blob, began, now, false);
    }
  }

  private void ended(boolean measured, long began, long now) {
    long micros = Math.min(LARGEST_MICROS, Math.max(1, TimeUnit.NANOSECONDS.toMicros(now - began)));
    recent.recordValue(micros);
    if (measured) {
      latency.recordValue(micros);
    }
  }

  /** The code of the status that is in it, its class where there is none. */
  static String status(Throwable error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof StatusRuntimeException status) {
        return status.getStatus().getCode().name();
      }
      if (cause instanceof StatusException status) {
        return status.getStatus().getCode().name();
      }
    }
    return error.getClass().getSimpleName();
  }

  private static boolean isMissing(Throwable error) {
    return status(error).equals(Status.Code.NOT_FOUND.name());
  }

  /** The calls that ended since this was last asked. */
  Histogram recent() {
    return recent.getIntervalHistogram();
  }

  Figures figures() {
    Histogram all = latency.copy();
    Map<String, Long> byStatus = new TreeMap<>();
    errors.forEach((status, count) -> byStatus.put(status, count.sum()));
    Throwable unexpected = firstUnexpected.get();
    return new Figures(
        calls.sum(),
        unanswered.sum(),
        Map.copyOf(byStatus),
        all.getValueAtPercentile(50) / 1e3,
        all.getValueAtPercentile(99) / 1e3,
        // up, never down
        (all.getMaxValue() + 999) / 1_000,
        unknownKeys.sum(),
        wrong.sum(),
        falseMissing.sum(),
        mirrored.sum(),
        failedMirrored.sum(),
        unexpected == null ? "" : unexpected.toString());
  }
}
