package dev.timebound.cas;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.CallAttempt;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.scheduler.Scheduler;
import reactor.test.scheduler.VirtualTimeScheduler;

/** An upload is given up on any thread, those that may not block too. */
class UploadTimersTest {
  private static final Duration TEN = Duration.ofSeconds(10);

  private final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  private final AtomicInteger planned = new AtomicInteger();

  /** Refuses what cannot be cancelled without waiting for the scheduler's lock. */
  private final Scheduler single =
      new Scheduler() {
        @Override
        public Disposable schedule(Runnable task) {
          return time.schedule(task);
        }

        @Override
        public Disposable schedule(Runnable task, long delay, TimeUnit unit) {
          planned.incrementAndGet();
          return time.schedule(task, delay, unit);
        }

        @Override
        public Disposable schedulePeriodically(
            Runnable task, long initialDelay, long period, TimeUnit unit) {
          throw new AssertionError("a periodic task's cancel may block");
        }

        @Override
        public Worker createWorker() {
          throw new AssertionError("a worker's periodic task's cancel may block");
        }

        @Override
        public long now(TimeUnit unit) {
          return time.now(unit);
        }

        @Override
        public void dispose() {
          time.dispose();
        }
      };

  @Test
  @DisplayName("CAS-3 an upload is watched by single timers, of which none is left behind")
  void timers() {
    UploadWatch watch = UploadWatchTest.watch(TEN, TEN, single, CallAttempt.create());

    Disposable watching = watch.stalled().subscribe();
    time.advanceTimeBy(TEN);
    assertThat(planned.get()).isGreaterThan(4);
    watching.dispose();

    int before = planned.get();
    time.advanceTimeBy(TEN);
    assertThat(planned).hasValue(before);
    assertThat(time.getScheduledTaskCount()).isEqualTo(before);
    time.dispose();
  }
}
