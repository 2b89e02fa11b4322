package dev.timebound.grpc;

import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Whether a connection's event loop runs: a no-op given to it must come back in time. A loop that a
 * subscriber blocks reads nothing, and every connection on it looks as if it had stalled. (BT-43)
 *
 * <p>One no-op at a time, given when someone asks: a loop nobody waits on is not disturbed.
 */
final class LoopWatch implements Runnable {
  private final LongSupplier clock;
  private final long patience;
  private final AtomicBoolean asked = new AtomicBoolean();
  private volatile @Nullable Executor loop;
  private volatile long askedAt;

  /** When a no-op last came back late, what then lay in the socket being unread still. */
  private volatile long lateAt;

  /**
   * @param clock in nanoseconds
   * @param patience nanoseconds a no-op may take to come back, and for how long after a late one
   *     the loop is given to catch up
   */
  LoopWatch(LongSupplier clock, long patience) {
    this.clock = clock;
    this.patience = patience;
    this.lateAt = clock.getAsLong() - patience;
  }

  void on(Executor loop) {
    this.loop = loop;
  }

  /** From any thread. True where nothing is known. */
  boolean runs() {
    Executor on = loop;
    if (on == null) {
      return true;
    }
    long now = clock.getAsLong();
    if (asked.compareAndSet(false, true)) {
      askedAt = now;
      try {
        on.execute(this);
      } catch (RejectedExecutionException ended) {
        asked.set(false);
        return true;
      }
    } else if (now - askedAt > patience && asked.get()) {
      return false;
    }
    return now - lateAt >= patience;
  }

  /** On the loop. */
  @Override
  public void run() {
    long now = clock.getAsLong();
    if (now - askedAt > patience) {
      lateAt = now;
    }
    asked.set(false);
  }
}
