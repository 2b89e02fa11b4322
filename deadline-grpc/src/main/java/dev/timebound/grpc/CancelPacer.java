package dev.timebound.grpc;

import java.util.ArrayDeque;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.scheduler.Scheduler;

/**
 * Keeps the resets that one connection sends within what its server allows: at most so many in any
 * interval of that length. What is beyond it waits, in order. Thread-safe. (BT-21a)
 */
final class CancelPacer {
  private final int most;
  private final long interval;
  private final Scheduler scheduler;

  /** When the resets of the last interval were sent, oldest first. */
  private final ArrayDeque<Long> sent = new ArrayDeque<>();

  private final ArrayDeque<BooleanSupplier> waiting = new ArrayDeque<>();
  private boolean scheduled;
  private boolean closed;
  private Disposable timer = Disposables.disposed();

  /** Told once nothing waits; no more comes then. */
  private Runnable idle = () -> {};

  CancelPacer(int most, long intervalNanos, Scheduler scheduler) {
    this.most = most;
    this.interval = intervalNanos;
    this.scheduler = scheduler;
  }

  /** Whether a reset may be sent now; it is counted then. */
  synchronized boolean tryNow() {
    long now = now();
    if (waiting.isEmpty() && room(now)) {
      sent.add(now);
      return true;
    }
    return false;
  }

  /** One that was sent unasked: a call's own deadline has passed. */
  synchronized void sent() {
    room(now());
    sent.add(now());
  }

  /**
   * @param reset sends it; false where there was nothing to reset any more. Run on the Scheduler.
   */
  synchronized void later(BooleanSupplier reset) {
    if (closed) {
      return;
    }
    waiting.add(reset);
    schedule();
  }

  /** Runs it once nothing waits any more: here, or on the Scheduler. Nothing is to come after. */
  void whenIdle(Runnable then) {
    synchronized (this) {
      if (!waiting.isEmpty()) {
        idle = then;
        return;
      }
    }
    then.run();
  }

  /** Its connection is cut, which ends what waits. */
  void close() {
    Runnable then;
    synchronized (this) {
      closed = true;
      waiting.clear();
      timer.dispose();
      then = idle;
    }
    then.run();
  }

  synchronized int waiting() {
    return waiting.size();
  }

  private boolean room(long now) {
    while (!sent.isEmpty() && now - sent.peek() >= interval) {
      sent.poll();
    }
    return sent.size() < most;
  }

  private synchronized void schedule() {
    Long first = sent.peek();
    if (scheduled || waiting.isEmpty()) {
      return;
    }
    long wait = first == null ? 0 : Math.max(0, first + interval - now());
    try {
      scheduled = true;
      timer = scheduler.schedule(this::run, wait, TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException disposed) {
      scheduled = false; // what is still open ends with its connection
    }
  }

  private void run() {
    BooleanSupplier next = next();
    while (next != null) {
      if (next.getAsBoolean()) {
        sent();
      }
      next = next();
    }
    schedule();
    Runnable then;
    synchronized (this) {
      then = waiting.isEmpty() ? idle : () -> {};
    }
    then.run();
  }

  private synchronized @Nullable BooleanSupplier next() {
    scheduled = false;
    return room(now()) ? waiting.poll() : null;
  }

  private long now() {
    return scheduler.now(TimeUnit.NANOSECONDS);
  }
}
