package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.github.resilience4j.core.IntervalFunction;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.scheduler.VirtualTimeScheduler;
import reactor.util.context.Context;

@Timeout(60)
class RetryWithinTest {
  private static final IntervalFunction EACH_100 = IntervalFunction.of(100);

  private VirtualTimeScheduler time;
  private final List<Long> calls = new ArrayList<>();
  private final List<IOException> errors = new ArrayList<>();

  @BeforeEach
  void virtualTime() {
    time = VirtualTimeScheduler.getOrSet();
  }

  @AfterEach
  void realTime() {
    VirtualTimeScheduler.reset();
  }

  /** Fails each time, at once, with another error. */
  private Mono<Integer> failing() {
    return Mono.defer(
        () -> {
          calls.add(time.now(TimeUnit.MILLISECONDS));
          IOException error = new IOException("call " + calls.size());
          errors.add(error);
          return Mono.error(error);
        });
  }

  private Recorder<Integer> run(Mono<Integer> call, Duration budget, Duration forTime) {
    Recorder<Integer> recorder = new Recorder<>();
    call.transform(Deadlines.within(budget)).subscribe(recorder);
    time.advanceTimeBy(forTime);
    assertThat(recorder.faults).isEmpty();
    return recorder;
  }

  private Object lastError() {
    return errors.get(errors.size() - 1);
  }

  @Nested
  class TimeThatIsLeft {
    @Test
    @DisplayName("DL-8 where no timer can be had, the last error, and not the scheduler's")
    void noTimer() {
      ManualScheduler refusing = new ManualScheduler();
      refusing.refuse();
      Recorder<Integer> recorder = new Recorder<>();
      failing()
          .retryWhen(RetryWithin.maxRetries(3))
          .contextWrite(c -> Deadlines.put(c, Deadline.after(Duration.ofSeconds(5), refusing)))
          .subscribe(recorder);
      assertThat(recorder.ends).containsExactly(lastError());
      assertThat(calls).hasSize(1);
    }

    @Test
    @DisplayName(
        "DL-8 gives up at once, with the last error itself, where the pause is not covered")
    void pauseNotCovered() {
      RetryWithin retry =
          RetryWithin.maxRetries(9).backoff(EACH_100).leastUsefulTime(Duration.ZERO);
      Recorder<Integer> recorder =
          run(failing().retryWhen(retry), Duration.ofMillis(250), Duration.ofMillis(200));
      assertThat(calls).containsExactly(0L, 100L, 200L);
      assertThat(recorder.ends).singleElement().isSameAs(lastError());
    }

    @Test
    @DisplayName("DL-8 a pause that takes all that is left is not begun")
    void pauseTakesAll() {
      RetryWithin retry =
          RetryWithin.maxRetries(9).backoff(EACH_100).leastUsefulTime(Duration.ZERO);
      Recorder<Integer> recorder =
          run(failing().retryWhen(retry), Duration.ofMillis(100), Duration.ZERO);
      assertThat(recorder.ends).singleElement().isSameAs(lastError());
    }

    @Test
    @DisplayName("DL-8 what is left after the pause must be of use: 10 ms by default")
    void leastUseful() {
      RetryWithin retry = RetryWithin.maxRetries(9).backoff(EACH_100);
      run(failing().retryWhen(retry), Duration.ofMillis(110), Duration.ofSeconds(1));
      assertThat(calls).hasSize(2);
      calls.clear();
      run(failing().retryWhen(retry), Duration.ofMillis(109), Duration.ofSeconds(1));
      assertThat(calls).hasSize(1);
      calls.clear();
      run(
          failing().retryWhen(retry.leastUsefulTime(Duration.ofMillis(200))),
          Duration.ofMillis(310),
          Duration.ofSeconds(1));
      assertThat(calls).hasSize(2);
    }

    @Test
    @DisplayName("DL-8 a timer that is late starts no call that has no time left")
    void lateTimer() {
      ManualScheduler clock = new ManualScheduler();
      Recorder<Integer> recorder =
          new Recorder<>(
              1, Deadlines.put(Context.empty(), Deadline.after(Duration.ofMillis(150), clock)));
      failing().retryWhen(RetryWithin.maxRetries(9).backoff(EACH_100)).subscribe(recorder);
      clock.pass(Duration.ofMillis(145));
      clock.fire();
      assertThat(calls).hasSize(1);
      assertThat(recorder.ends).singleElement().isSameAs(lastError());
      assertThat(clock.pending()).isZero();
    }

    @Test
    @DisplayName("DL-8 a deadline that has passed ends it, an attempt's own does not")
    void attemptsOwnDeadline() {
      AtomicInteger attempts = new AtomicInteger();
      Mono<Integer> slow =
          Mono.defer(
                  () -> {
                    attempts.incrementAndGet();
                    return Mono.<Integer>never();
                  })
              .transform(Deadlines.within(Duration.ofMillis(300), "attempt"));
      Recorder<Integer> recorder =
          run(
              Mono.from(slow).retryWhen(RetryWithin.maxRetries(9).backoff(EACH_100)),
              Duration.ofSeconds(1),
              Duration.ofSeconds(2));
      assertThat(attempts).hasValue(3); // at 0, 400 and 800 ms
      assertThat(recorder.ends).singleElement().isInstanceOf(DeadlineExceededException.class);
    }

    @Test
    @DisplayName("DL-8 the deadline is read at each subscription")
    void perSubscription() {
      Mono<Integer> call = failing().retryWhen(RetryWithin.maxRetries(1).backoff(EACH_100));
      run(call, Duration.ofMillis(50), Duration.ofSeconds(1));
      assertThat(calls).hasSize(1);
      run(call, Duration.ofMillis(500), Duration.ofSeconds(1));
      assertThat(calls).hasSize(3);
    }

    @Test
    @DisplayName("DL-8 without a deadline the other settings count")
    void noDeadline() {
      Recorder<Integer> recorder = new Recorder<>();
      failing().retryWhen(RetryWithin.maxRetries(2).backoff(EACH_100)).subscribe(recorder);
      time.advanceTimeBy(Duration.ofMinutes(1));
      assertThat(calls).containsExactly(0L, 100L, 200L);
      assertThat(recorder.ends).singleElement().isSameAs(lastError());
    }

    @Test
    @DisplayName("DL-8 the pauses run on the scheduler of the deadline")
    void deadlinesScheduler() {
      ManualScheduler clock = new ManualScheduler();
      Recorder<Integer> recorder =
          new Recorder<>(
              1, Deadlines.put(Context.empty(), Deadline.after(Duration.ofSeconds(1), clock)));
      failing().retryWhen(RetryWithin.maxRetries(1).backoff(EACH_100)).subscribe(recorder);
      assertThat(clock.pending()).isEqualTo(1);
      assertThat(time.getScheduledTaskCount()).isZero();
      recorder.subscription().cancel();
      assertThat(clock.pending()).isZero();
    }
  }

  @Nested
  class Which {
    @Test
    @DisplayName("DL-8 what the filter does not take is told at once")
    void filter() {
      RetryWithin retry = RetryWithin.maxRetries(9).filter(e -> !"call 2".equals(e.getMessage()));
      Recorder<Integer> recorder =
          run(failing().retryWhen(retry), Duration.ofHours(1), Duration.ofMinutes(1));
      assertThat(calls).hasSize(2);
      assertThat(recorder.ends).singleElement().isSameAs(lastError());
    }

    @Test
    @DisplayName("DL-8 so many retries and no more; then the last error, not one that wraps it")
    void used() {
      Recorder<Integer> recorder =
          run(
              failing().retryWhen(RetryWithin.maxRetries(3)),
              Duration.ofHours(1),
              Duration.ofMinutes(1));
      assertThat(calls).hasSize(4);
      assertThat(recorder.ends).singleElement().isSameAs(lastError());
      calls.clear();
      run(
          failing().retryWhen(RetryWithin.maxRetries(0)),
          Duration.ofHours(1),
          Duration.ofMinutes(1));
      assertThat(calls).hasSize(1);
    }

    @Test
    @DisplayName("DL-8 an item sets the count back where errors are transient")
    void transientErrors() {
      AtomicInteger subscriptions = new AtomicInteger();
      Flux<Integer> stream =
          Flux.defer(
              () ->
                  subscriptions.incrementAndGet() > 5
                      ? Flux.just(0)
                      : Flux.just(1).concatWith(Mono.error(new IOException())));
      Recorder<Integer> counted = new Recorder<>();
      stream.retryWhen(RetryWithin.maxRetries(1)).subscribe(counted);
      time.advanceTimeBy(Duration.ofMinutes(1));
      assertThat(counted.items).hasSize(2);
      subscriptions.set(0);
      Recorder<Integer> setBack = new Recorder<>();
      stream.retryWhen(RetryWithin.maxRetries(1).transientErrors(true)).subscribe(setBack);
      time.advanceTimeBy(Duration.ofMinutes(1));
      assertThat(setBack.items).hasSize(6);
      assertThat(setBack.ends).containsExactly("complete");
    }

    @Test
    @DisplayName("DL-8 a function that throws ends the retries; the last error is not lost")
    void throwing() {
      IllegalStateException thrown = new IllegalStateException("filter");
      RetryWithin retry =
          RetryWithin.maxRetries(9)
              .filter(
                  error -> {
                    throw thrown;
                  });
      Recorder<Integer> recorder =
          run(failing().retryWhen(retry), Duration.ofHours(1), Duration.ZERO);
      assertThat(recorder.ends).singleElement().isSameAs(thrown);
      assertThat(thrown).hasSuppressedException(errors.get(0));
    }

    @Test
    @DisplayName("DL-11 each retry is taken from the budget; without one left the error is told")
    void budget() {
      RetryBudget budget = RetryBudget.builder().perSecond(2).build();
      RetryWithin retry = RetryWithin.maxRetries(9).backoff(IntervalFunction.of(1)).budget(budget);
      Recorder<Integer> recorder =
          run(failing().retryWhen(retry), Duration.ofHours(1), Duration.ofMillis(100));
      assertThat(calls).hasSize(3);
      assertThat(recorder.ends).singleElement().isSameAs(lastError());
      assertThat(budget.granted()).isEqualTo(2);
      assertThat(budget.refused()).isEqualTo(1);
    }

    @Test
    @DisplayName(
        "DL-11 each subscription earns its share, and what is refused anyway costs nothing")
    void earns() {
      RetryBudget budget = RetryBudget.builder().perSecond(0).build();
      RetryWithin retry = RetryWithin.maxRetries(1).filter(e -> false).budget(budget);
      for (int i = 0; i < 10; i++) {
        failing().retryWhen(retry).subscribe(new Recorder<>());
      }
      assertThat(budget.granted() + budget.refused()).isZero();
      assertThat(budget.tryTake()).isTrue();
      assertThat(budget.tryTake()).isTrue();
      assertThat(budget.tryTake()).isFalse();
    }
  }

  @Nested
  class Pauses {
    @Test
    @DisplayName("DL-8 pauses double to their maximum, each with a jitter of half, the longest too")
    void jitter() {
      List<List<Long>> pauses = new ArrayList<>();
      for (int i = 0; i < 200; i++) {
        calls.clear();
        run(
            failing()
                .retryWhen(
                    RetryWithin.maxRetries(6)
                        .backoff(Duration.ofMillis(100), Duration.ofMillis(900))),
            Duration.ofHours(1),
            Duration.ofMinutes(1));
        List<Long> between = new ArrayList<>();
        for (int call = 1; call < calls.size(); call++) {
          between.add(calls.get(call) - calls.get(call - 1));
        }
        pauses.add(between);
      }
      long[] middle = {100, 200, 400, 600, 600, 600};
      for (int retry = 0; retry < middle.length; retry++) {
        int number = retry;
        long expected = middle[retry];
        assertThat(pauses)
            .extracting(one -> one.get(number))
            .allMatch(pause -> pause >= expected / 2 && pause <= expected * 3 / 2 && pause <= 900)
            .anyMatch(pause -> pause < expected * 3 / 4)
            .anyMatch(pause -> pause > expected * 5 / 4);
      }
    }

    @Test
    @DisplayName("DL-8 a pause that the failed one asked for is kept to, beyond the maximum too")
    void asked() {
      RetryWithin retry =
          RetryWithin.maxRetries(2)
              .backoff(EACH_100)
              .minDelay(e -> "call 1".equals(e.getMessage()) ? Duration.ofSeconds(3) : null);
      run(failing().retryWhen(retry), Duration.ofHours(1), Duration.ofMinutes(1));
      assertThat(calls).containsExactly(0L, 3_000L, 3_100L);
      calls.clear();
      Recorder<Integer> recorder =
          run(
              failing().retryWhen(retry.minDelay(e -> Duration.ofDays(1_000_000))),
              Duration.ofHours(1),
              Duration.ZERO);
      assertThat(recorder.ends).singleElement().isSameAs(lastError());
    }

    @Test
    @DisplayName("DL-8 no pause: no timer of 0, the retry comes at once")
    void none() {
      run(
          failing().retryWhen(RetryWithin.maxRetries(3).backoff(IntervalFunction.of(1, i -> 1L))),
          Duration.ofHours(1),
          Duration.ofSeconds(1));
      assertThat(calls).hasSize(4);
      calls.clear();
      run(
          failing().retryWhen(RetryWithin.maxRetries(3).backoff(retry -> 0L)),
          Duration.ofHours(1),
          Duration.ZERO);
      assertThat(calls).hasSize(4);
    }

    @Test
    @DisplayName("DL-5 the ledger shows the pauses")
    void ledger() {
      List<Deadline> seen = new ArrayList<>();
      run(
          Deadlines.<Integer>defer(
                  deadline -> {
                    seen.add(deadline);
                    return Mono.error(new IOException());
                  })
              .retryWhen(RetryWithin.maxRetries(2).backoff(EACH_100).operation("users.get")),
          Duration.ofHours(1),
          Duration.ofMinutes(1));
      assertThat(seen.get(0).ledger())
          .hasToString("[users.get pause 1 100 ms, users.get pause 2 100 ms]");
    }
  }

  @Test
  @DisplayName("DL-8 settings out of range are named, with the value and what was expected")
  void settings() {
    RetryWithin retry = RetryWithin.maxRetries(1);
    assertThatThrownBy(() -> RetryWithin.maxRetries(-1))
        .hasMessage("maxRetries: -1 (expected: >= 0)");
    assertThatThrownBy(() -> retry.backoff(Duration.ofNanos(999_999), Duration.ofSeconds(1)))
        .hasMessage("backoff.first: PT0.000999999S (expected: >= PT0.001S)");
    assertThatThrownBy(() -> retry.backoff(Duration.ofMillis(10), Duration.ofMillis(9)))
        .hasMessage("backoff.max: PT0.009S (expected: >= PT0.01S)");
    assertThatThrownBy(() -> retry.leastUsefulTime(Duration.ofMillis(-1)))
        .hasMessage("leastUsefulTime: PT-0.001S (expected: >= 0)");
    assertThat(retry.backoff(Duration.ofMillis(1), Duration.ofMillis(1))).isNotNull();
  }

  @Test
  @DisplayName("DL-8 a null setting is refused at once, by its name")
  @SuppressWarnings("NullAway")
  void nulls() {
    RetryWithin retry = RetryWithin.maxRetries(1);
    assertThatThrownBy(() -> retry.backoff(null, Duration.ofSeconds(1)))
        .hasMessage("backoff.first");
    assertThatThrownBy(() -> retry.backoff(Duration.ofSeconds(1), null)).hasMessage("backoff.max");
    assertThatThrownBy(() -> retry.leastUsefulTime(null)).hasMessage("leastUsefulTime");
  }
}
