package dev.timebound.grpc;

import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where what a client reads is delivered: the user's executor, or one of the client's own with a
 * bounded number of threads, so that a subscriber that blocks holds one of them and not the
 * transport's loop. A call has one task at a time, so what is queued is bounded by the calls that
 * are open.
 *
 * <p>A ForkJoinPool, because the transport's loops hand their tasks over without a lock; a
 * ThreadPoolExecutor's queue makes a loop wait for its workers.
 */
public final class DeliveryExecutor implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DeliveryExecutor.class);
  private static final long IDLE_SECONDS = 10;

  private final Executor executor;
  private final ForkJoinPool own;
  private final AtomicBoolean told = new AtomicBoolean();

  /**
   * @param name of its own threads, a number behind it
   * @param given the user's; null for one of the client's own
   */
  public static DeliveryExecutor create(String name, @Nullable Executor given) {
    return new DeliveryExecutor(name, given);
  }

  private DeliveryExecutor(String name, @Nullable Executor given) {
    int threads = Math.max(4, 2 * Runtime.getRuntime().availableProcessors());
    AtomicInteger sequence = new AtomicInteger();
    own =
        new ForkJoinPool(
            threads,
            pool -> {
              ForkJoinWorkerThread thread =
                  ForkJoinPool.defaultForkJoinWorkerThreadFactory.newThread(pool);
              thread.setName(name + "-" + sequence.incrementAndGet());
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
    executor = given == null ? own : task -> execute(given, task);
  }

  /**
   * What the user's executor refuses (a full queue, a shutdown) runs on the client's own threads: a
   * task that is lost is a read that never ends, and a channel whose task is refused is broken for
   * good.
   */
  private void execute(Executor given, Runnable task) {
    try {
      given.execute(task);
    } catch (RejectedExecutionException refused) {
      if (told.compareAndSet(false, true)) {
        LOG.warn(
            "deliverOn's executor refuses tasks: they run on the client's own threads", refused);
      }
      own.execute(task);
    }
  }

  /** Never refuses a task until it is closed. */
  public Executor executor() {
    return executor;
  }

  /**
   * To be called when the event loops have ended: until then each call that the client's close ends
   * says so by a task of its own. Tasks handed in before still run.
   */
  @Override
  public void close() {
    own.shutdown();
  }
}
