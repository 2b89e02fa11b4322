package dev.timebound.bigtable;

import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Where rows are delivered: the user's executor, or one of the client's own with a bounded number
 * of threads, so that a subscriber that blocks holds one of them and not the transport's loop.
 */
final class DeliveryExecutor implements AutoCloseable {
  private final Executor executor;
  private final @Nullable ThreadPoolExecutor own;

  DeliveryExecutor(@Nullable Executor given) {
    if (given != null) {
      executor = given;
      own = null;
      return;
    }
    int threads = Math.max(4, 2 * Runtime.getRuntime().availableProcessors());
    AtomicInteger sequence = new AtomicInteger();
    own =
        new ThreadPoolExecutor(
            threads,
            threads,
            10,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> {
              Thread thread = new Thread(task, "timebound-bigtable-" + sequence.incrementAndGet());
              thread.setDaemon(true);
              return thread;
            });
    own.allowCoreThreadTimeOut(true);
    executor = own;
  }

  Executor executor() {
    return executor;
  }

  /** Tasks already handed in still run: the last signals of calls that a close ends. */
  @Override
  public void close() {
    if (own != null) {
      own.shutdown();
    }
  }
}
