package dev.timebound.fetch.segments;

import java.util.concurrent.Callable;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** Where a store waits for the disk: threads of its own, which share one queue, or another's. */
final class IoThreads {
  private static final AtomicInteger STORES = new AtomicInteger();
  private static final long IDLE_SECONDS = 60;

  private final Scheduler scheduler;
  private final Background background;
  private final @Nullable ScheduledThreadPoolExecutor own;

  private IoThreads(Scheduler scheduler, @Nullable ScheduledThreadPoolExecutor own) {
    this.scheduler = scheduler;
    this.background = new Background(scheduler);
    this.own = own;
  }

  static IoThreads of(@Nullable Scheduler others, int count) {
    if (others != null) {
      return new IoThreads(others, null);
    }
    String name = "timebound-segments-" + STORES.incrementAndGet() + "-";
    AtomicInteger made = new AtomicInteger();
    ScheduledThreadPoolExecutor threads =
        new ScheduledThreadPoolExecutor(
            count,
            task -> {
              Thread thread = new Thread(task, name + made.incrementAndGet());
              thread.setDaemon(true);
              return thread;
            });
    threads.setKeepAliveTime(IDLE_SECONDS, TimeUnit.SECONDS);
    threads.allowCoreThreadTimeOut(true);
    threads.setRemoveOnCancelPolicy(true);
    threads.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    return new IoThreads(Schedulers.fromExecutorService(threads), threads);
  }

  Scheduler scheduler() {
    return scheduler;
  }

  Background background() {
    return background;
  }

  /** Nothing interrupts a call: it would close the file that is waited for. */
  <T> Mono<T> call(Callable<T> work) {
    return Mono.create(
        sink ->
            background.run(
                () -> {
                  try {
                    sink.success(work.call());
                  } catch (Throwable e) {
                    sink.error(e);
                  }
                }));
  }

  /** The store's own threads end; another's go on. */
  void end() {
    if (own != null) {
      own.shutdown();
    }
  }
}
