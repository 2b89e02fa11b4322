package dev.timebound.bigtable;

import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Where rows are delivered: the user's executor, or one of the client's own with a bounded number
 * of threads, so that a subscriber that blocks holds one of them and not the transport's loop. A
 * call has one task at a time, so what is queued is bounded by the calls that are open.
 *
 * <p>A ForkJoinPool, because the transport's loops hand their tasks over without a lock; a
 * ThreadPoolExecutor's queue makes a loop wait for its workers.
 */
final class DeliveryExecutor implements AutoCloseable {
  private static final long IDLE_SECONDS = 10;

  private final Executor executor;
  private final @Nullable ForkJoinPool own;

  DeliveryExecutor(@Nullable Executor given) {
    if (given != null) {
      executor = given;
      own = null;
      return;
    }
    int threads = Math.max(4, 2 * Runtime.getRuntime().availableProcessors());
    AtomicInteger sequence = new AtomicInteger();
    own =
        new ForkJoinPool(
            threads,
            pool -> {
              ForkJoinWorkerThread thread =
                  ForkJoinPool.defaultForkJoinWorkerThreadFactory.newThread(pool);
              thread.setName("timebound-bigtable-" + sequence.incrementAndGet());
              return thread;
            },
            null,
            true, // first in, first out
            0,
            threads,
            1,
            pool -> true,
            IDLE_SECONDS,
            TimeUnit.SECONDS);
    executor = own;
  }

  Executor executor() {
    return executor;
  }

  /**
   * To be called when the event loops have ended: until then each call that the client's close ends
   * says so by a task of its own. Tasks handed in before still run.
   */
  @Override
  public void close() {
    if (own != null) {
      own.shutdown();
    }
  }
}
