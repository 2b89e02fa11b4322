package dev.timebound.grpc;

import io.github.resilience4j.core.IntervalFunction;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.DoubleSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.scheduler.Scheduler;

/**
 * Replaces channels in the background, one at a time: those that do not get connected (BT-44) and
 * those that come to the age at which a server would close them (BT-6).
 *
 * <pre>
 *   age 0                                                     refreshAfter   the server's limit
 *   |----------|----------|---- ... one every refreshAfter / n ----|--------------|
 * </pre>
 *
 * The oldest of n channels goes every n-th part of the age, and at that age at the latest, each
 * with a jitter of a tenth: the channels of the start, all of one age, are spread from the first
 * round on, and so are the processes of a fleet. After a failure the next attempt waits, longer
 * each time, for a minute at most.
 */
final class PoolCare {
  private static final Logger LOG = LoggerFactory.getLogger(ChannelPool.class);
  private static final double JITTER = 0.1;
  private static final Duration LONGEST_PAUSE = Duration.ofMinutes(1);

  private final ChannelPoolSettings settings;
  private final Scheduler scheduler;
  private final PoolChannels channels;
  private final DoubleSupplier random;
  private final IntervalFunction pauses;
  private final AtomicLong refreshed = new AtomicLong();
  private final AtomicLong reconnected = new AtomicLong();
  private final AtomicLong failed = new AtomicLong();

  // under this object's lock
  private boolean closed;
  private boolean busy;
  private int failures;
  private long pauseUntil;
  private long nextRound;
  private Disposable timer = Disposables.disposed();
  private Disposable running = Disposables.disposed();

  PoolCare(ChannelPoolSettings settings, PoolChannels channels, DoubleSupplier random) {
    this.settings = settings;
    this.scheduler = settings.scheduler();
    this.channels = channels;
    this.random = random;
    Duration first = min(settings.connectTimeout(), LONGEST_PAUSE);
    this.pauses = IntervalFunction.ofExponentialBackoff(first, 2.0, LONGEST_PAUSE);
    this.pauseUntil = now();
    this.nextRound = now();
  }

  synchronized void start() {
    nextRound = now() + round();
    plan();
  }

  /** A channel has become one that does not get connected, or the pool has changed. */
  synchronized void plan() {
    if (closed || busy) {
      return;
    }
    long at = firstUnconnected() != null ? pauseUntil : refreshAt();
    timer.dispose();
    if (at == Long.MAX_VALUE) {
      return;
    }
    try {
      timer = scheduler.schedule(this::act, Math.max(0, at - now()), TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException disposed) {
      // the pool goes down
    }
  }

  private void act() {
    PooledChannel old;
    boolean unconnected;
    synchronized (this) {
      if (closed || busy) {
        return;
      }
      old = firstUnconnected();
      unconnected = old != null;
      if (old == null && refreshAt() <= now()) {
        old = oldest();
      }
      if (old == null) {
        plan();
        return;
      }
      busy = true;
    }
    PooledChannel going = old;
    Disposable run =
        channels
            .replace(going, () -> !unconnected || going.isUnconnected())
            .subscribe(
                done -> ended(going, unconnected, done, null),
                e -> ended(going, unconnected, false, e));
    synchronized (this) {
      running = run;
      if (closed) {
        run.dispose();
      }
    }
  }

  private void ended(
      PooledChannel old, boolean unconnected, boolean done, @Nullable Throwable why) {
    String what =
        unconnected ? "not connected for " + settings.connectTimeout() : "due for a refresh";
    synchronized (this) {
      busy = false;
      if (why == null) {
        failures = 0;
        pauseUntil = now();
      } else {
        failures++;
        pauseUntil = now() + TimeUnit.MILLISECONDS.toNanos(pauses.apply(failures));
      }
      if (!unconnected && why == null) {
        nextRound = now() + round();
      }
      plan();
    }
    if (why != null) {
      failed.incrementAndGet();
      LOG.warn(
          "{}: {} is {}, and stays: its replacement failed: {}",
          settings.name(),
          old,
          what,
          Causes.text(why, ""));
    } else if (done) {
      (unconnected ? reconnected : refreshed).incrementAndGet();
      LOG.info("{}: {} is {}, and was replaced", settings.name(), old, what);
    }
  }

  synchronized void close() {
    closed = true;
    timer.dispose();
    running.dispose();
  }

  // --- for meters

  long refreshed() {
    return refreshed.get();
  }

  long reconnected() {
    return reconnected.get();
  }

  long failed() {
    return failed.get();
  }

  // --- when, and whom

  private @Nullable PooledChannel firstUnconnected() {
    for (PooledChannel member : channels.inService()) {
      if (member.isUnconnected()) {
        return member;
      }
    }
    return null;
  }

  private @Nullable PooledChannel oldest() {
    List<PooledChannel> all = channels.inService();
    return all.stream().min(Comparator.comparingLong(PooledChannel::refreshAt)).orElse(null);
  }

  /** Never where there is no refresh. */
  private long refreshAt() {
    PooledChannel oldest = settings.refreshing() ? oldest() : null;
    return oldest == null
        ? Long.MAX_VALUE
        : Math.max(pauseUntil, Math.min(nextRound, oldest.refreshAt()));
  }

  private long round() {
    return jittered(settings.refreshAfter().toNanos() / Math.max(1, channels.inService().size()));
  }

  /** When a channel made now is to be refreshed at the latest, on the Scheduler's clock. */
  long refreshAtAfterNow() {
    return now() + jittered(settings.refreshAfter().toNanos());
  }

  private long jittered(long nanos) {
    return (long) (nanos * (1 - JITTER * random.getAsDouble()));
  }

  private long now() {
    return scheduler.now(TimeUnit.NANOSECONDS);
  }

  private static Duration min(Duration a, Duration b) {
    return a.compareTo(b) < 0 ? a : b;
  }
}
