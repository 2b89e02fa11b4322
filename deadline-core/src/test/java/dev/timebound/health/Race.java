package dev.timebound.health;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Lets tasks begin at the same moment, as near as threads that spin for it can. */
final class Race implements AutoCloseable {
  private final ExecutorService pool;

  Race(int threads) {
    pool = Executors.newFixedThreadPool(threads);
  }

  /** As many as there are threads; their failures are the caller's. */
  void run(Runnable... tasks) throws Exception {
    AtomicInteger missing = new AtomicInteger(tasks.length);
    List<Future<?>> done = new ArrayList<>();
    for (Runnable task : tasks) {
      done.add(
          pool.submit(
              () -> {
                missing.decrementAndGet();
                for (int i = 0; missing.get() > 0; i++) {
                  if (i > 1000) {
                    Thread.yield();
                  }
                }
                task.run();
              }));
    }
    for (Future<?> f : done) {
      f.get(60, TimeUnit.SECONDS);
    }
  }

  @Override
  public void close() {
    pool.shutdownNow();
  }
}
