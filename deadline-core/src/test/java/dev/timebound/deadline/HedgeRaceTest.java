package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.health.Race;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.core.scheduler.Scheduler;
import reactor.util.context.Context;

/** A hedge whose two calls, timer and downstream meet on two threads, thousands of times. */
@Timeout(60)
class HedgeRaceTest {
  private static final Duration AFTER = Duration.ofMillis(50);
  private static final int ROUNDS = 10_000;

  private static final class Round {
    final ManualScheduler clock = new ManualScheduler();
    final List<MonoSink<String>> calls = new CopyOnWriteArrayList<>();
    final AtomicInteger cancelled = new AtomicInteger();
    final Recorder<String> recorder =
        new Recorder<>(
            1, Deadlines.put(Context.empty(), Deadline.after(AFTER.multipliedBy(9), clock)));

    Round() {
      this(new ManualScheduler());
    }

    Round(Scheduler budgetsClock) {
      RetryBudget budget = RetryBudget.builder().scheduler(budgetsClock).build();
      Mono.<String>create(
              sink -> {
                sink.onCancel(cancelled::incrementAndGet);
                calls.add(sink);
              })
          .transform(Deadlines.hedge(AFTER, budget))
          .subscribe(recorder);
      clock.pass(AFTER);
    }

    void together(Race race, Runnable one, Runnable other) {
      race.run(one, other);
      assertThat(recorder.faults).isEmpty();
      assertThat(clock.pending()).isZero();
    }
  }

  private static void race(BiConsumer<Race, Round> round) {
    try (Race race = new Race(7)) {
      for (int i = 0; i < ROUNDS; i++) {
        round.accept(race, new Round());
      }
    }
  }

  @Test
  @DisplayName(
      "DL-11 an answer that races the second call's start: that call is cancelled, or not made")
  void answerAndStart() {
    race(
        (race, round) -> {
          round.together(race, round.clock::fire, () -> round.calls.get(0).success("first"));
          assertThat(round.recorder.items).containsExactly("first");
          assertThat(round.cancelled).hasValue(round.calls.size() - 1);
        });
  }

  @Test
  @DisplayName(
      "DL-11 an error that races the second call's start is told, or the call is waited for")
  void errorAndStart() {
    race(
        (race, round) -> {
          round.together(
              race, round.clock::fire, () -> round.calls.get(0).error(new IOException()));
          if (round.calls.size() == 1) {
            assertThat(round.recorder.ends).singleElement().isInstanceOf(IOException.class);
          } else {
            assertThat(round.recorder.ends).isEmpty();
            round.calls.get(1).success("second");
            assertThat(round.recorder.items).containsExactly("second");
          }
        });
  }

  @Test
  @DisplayName("DL-11 a cancel that races the second call's start reaches every call that was made")
  void cancelAndStart() {
    race(
        (race, round) -> {
          round.together(race, round.clock::fire, () -> round.recorder.subscription().cancel());
          assertThat(round.recorder.ends).isEmpty();
          assertThat(round.cancelled).hasValue(round.calls.size());
        });
  }

  @ParameterizedTest
  @ValueSource(strings = {"answers", "fails", "is left"})
  @DisplayName("DL-11 a call that ends at the very moment the second is to start: none starts")
  void endsAsItStarts(String how) {
    List<Runnable> meanwhile = new ArrayList<>();
    Round round =
        new Round(
            new Clock() {
              @Override
              public long now(TimeUnit unit) {
                meanwhile.forEach(Runnable::run); // in the midst of the budget's decision
                return 0;
              }
            });
    meanwhile.add(
        () -> {
          switch (how) {
            case "answers" -> round.calls.get(0).success("first");
            case "fails" -> round.calls.get(0).error(new IOException());
            default -> round.recorder.subscription().cancel();
          }
        });
    round.clock.fire();
    assertThat(round.calls).hasSize(1);
    assertThat(round.recorder.ends).hasSize(how.equals("is left") ? 0 : 1);
    assertThat(round.recorder.faults).isEmpty();
    assertThat(round.clock.pending()).isZero();
  }

  /** Tells the time and nothing else. */
  private abstract static class Clock implements Scheduler {
    @Override
    public Disposable schedule(Runnable task) {
      throw new UnsupportedOperationException();
    }

    @Override
    public Worker createWorker() {
      throw new UnsupportedOperationException();
    }
  }
}
