package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.util.context.Context;

/** A hedge whose two calls, timer and downstream meet on two threads, thousands of times. */
@Timeout(60)
class HedgeRaceTest {
  private static final Duration AFTER = Duration.ofMillis(50);
  private static final int ROUNDS = 3_000;
  private static final ExecutorService THREADS = Executors.newFixedThreadPool(2);

  @AfterAll
  static void stop() {
    THREADS.shutdownNow();
  }

  private static final class Round {
    final ManualScheduler clock = new ManualScheduler();
    final List<MonoSink<String>> calls = new CopyOnWriteArrayList<>();
    final AtomicInteger cancelled = new AtomicInteger();
    final Recorder<String> recorder =
        new Recorder<>(
            1, Deadlines.put(Context.empty(), Deadline.after(AFTER.multipliedBy(9), clock)));

    Round() {
      RetryBudget budget = RetryBudget.builder().scheduler(clock).build();
      Mono.<String>create(
              sink -> {
                sink.onCancel(cancelled::incrementAndGet);
                calls.add(sink);
              })
          .transform(Deadlines.hedge(AFTER, budget))
          .subscribe(recorder);
      clock.pass(AFTER);
    }

    void together(Runnable one, Runnable other) throws InterruptedException {
      AtomicInteger ready = new AtomicInteger();
      CountDownLatch done = new CountDownLatch(2);
      for (Runnable each : List.of(one, other)) {
        THREADS.execute(
            () -> {
              try {
                ready.incrementAndGet();
                while (ready.get() < 2) {
                  Thread.onSpinWait();
                }
                each.run();
              } catch (RuntimeException e) {
                recorder.faults.add(e.toString());
              } finally {
                done.countDown();
              }
            });
      }
      assertThat(done.await(10, TimeUnit.SECONDS)).isTrue();
      assertThat(recorder.faults).isEmpty();
      assertThat(clock.pending()).isZero();
    }
  }

  @Test
  @DisplayName("DL-11 two answers that race: one is told, once")
  void answers() throws InterruptedException {
    for (int i = 0; i < ROUNDS; i++) {
      Round round = new Round();
      round.clock.fire();
      round.together(
          () -> round.calls.get(0).success("first"), () -> round.calls.get(1).success("second"));
      assertThat(round.recorder.items).hasSize(1);
      assertThat(round.recorder.ends).containsExactly("complete");
    }
  }

  @Test
  @DisplayName("DL-11 two errors that race: one is told, once")
  void errors() throws InterruptedException {
    for (int i = 0; i < ROUNDS; i++) {
      Round round = new Round();
      round.clock.fire();
      round.together(
          () -> round.calls.get(0).error(new IOException()),
          () -> round.calls.get(1).error(new IOException()));
      assertThat(round.recorder.ends).singleElement().isInstanceOf(IOException.class);
    }
  }

  @Test
  @DisplayName(
      "DL-11 an answer that races the second call's start: that call is cancelled, or not made")
  void answerAndStart() throws InterruptedException {
    for (int i = 0; i < ROUNDS; i++) {
      Round round = new Round();
      round.together(round.clock::fire, () -> round.calls.get(0).success("first"));
      assertThat(round.recorder.items).containsExactly("first");
      assertThat(round.cancelled).hasValue(round.calls.size() - 1);
    }
  }

  @Test
  @DisplayName(
      "DL-11 an error that races the second call's start is told, or the call is waited for")
  void errorAndStart() throws InterruptedException {
    for (int i = 0; i < ROUNDS; i++) {
      Round round = new Round();
      round.together(round.clock::fire, () -> round.calls.get(0).error(new IOException()));
      if (round.calls.size() == 1) {
        assertThat(round.recorder.ends).singleElement().isInstanceOf(IOException.class);
      } else {
        assertThat(round.recorder.ends).isEmpty();
        round.calls.get(1).success("second");
        assertThat(round.recorder.items).containsExactly("second");
      }
    }
  }

  @Test
  @DisplayName("DL-11 a cancel that races the second call's start reaches every call that was made")
  void cancelAndStart() throws InterruptedException {
    for (int i = 0; i < ROUNDS; i++) {
      Round round = new Round();
      round.together(round.clock::fire, () -> round.recorder.subscription().cancel());
      assertThat(round.recorder.ends).isEmpty();
      assertThat(round.cancelled).hasValue(round.calls.size());
    }
  }
}
