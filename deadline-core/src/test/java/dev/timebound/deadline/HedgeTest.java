package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Hooks;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

@Timeout(60)
class HedgeTest {
  private static final Duration AFTER = Duration.ofMillis(50);

  private final ManualScheduler clock = new ManualScheduler();
  private final RetryBudget budget = RetryBudget.builder().scheduler(clock).build();
  private final Backend backend = new Backend();

  /** Each subscription is a call, answered by the test. */
  private static final class Backend {
    final List<MonoSink<String>> calls = new ArrayList<>();
    final List<Context> contexts = new ArrayList<>();
    final AtomicInteger cancelled = new AtomicInteger();

    Mono<String> call() {
      return Mono.create(
          sink -> {
            sink.onCancel(cancelled::incrementAndGet);
            contexts.add(Context.of(sink.contextView()));
            calls.add(sink);
          });
    }
  }

  private Recorder<String> subscribe(Duration left) {
    Context context = Deadlines.put(Context.of("who", "me"), Deadline.after(left, clock));
    Recorder<String> recorder = new Recorder<>(1, context);
    backend.call().transform(Deadlines.hedge(AFTER, budget)).subscribe(recorder);
    return recorder;
  }

  private Recorder<String> subscribe() {
    return subscribe(Duration.ofSeconds(1));
  }

  private void pass(Duration duration) {
    clock.pass(duration);
    clock.fire();
  }

  private void assertDone(Recorder<String> recorder) {
    assertThat(recorder.faults).isEmpty();
    assertThat(recorder.ends).hasSize(1);
    assertThat(clock.pending()).isZero();
  }

  @Nested
  class Second {
    @Test
    @DisplayName("DL-11 a second call after the time without an answer, and not before")
    void starts() {
      Recorder<String> recorder = subscribe();
      pass(AFTER.minusNanos(1));
      assertThat(backend.calls).hasSize(1);
      pass(Duration.ofNanos(1));
      assertThat(backend.calls).hasSize(2);
      pass(Duration.ofMillis(500));
      assertThat(backend.calls).hasSize(2);
      assertThat(backend.contexts).allMatch(context -> context.get("who").equals("me"));
      recorder.subscription().cancel();
    }

    @Test
    @DisplayName("DL-11 the second answers first: the first call is cancelled")
    void secondWins() {
      Recorder<String> recorder = subscribe();
      pass(AFTER);
      backend.calls.get(1).success("second");
      assertThat(recorder.items).containsExactly("second");
      assertThat(backend.cancelled).hasValue(1);
      backend.calls.get(0).success("first"); // too late
      assertThat(recorder.items).containsExactly("second");
      assertDone(recorder);
    }

    @Test
    @DisplayName("DL-11 the first answers after all: the second call is cancelled")
    void firstWins() {
      Recorder<String> recorder = subscribe();
      pass(AFTER);
      backend.calls.get(0).success("first");
      assertThat(recorder.items).containsExactly("first");
      assertThat(backend.cancelled).hasValue(1);
      assertDone(recorder);
    }

    @Test
    @DisplayName("DL-11 an answer in time: no second call, and no timer is left")
    void inTime() {
      Recorder<String> recorder = subscribe();
      backend.calls.get(0).success("first");
      assertDone(recorder);
      pass(AFTER);
      assertThat(backend.calls).hasSize(1);
      assertThat(budget.granted()).isZero();
    }

    @Test
    @DisplayName("DL-11 an answer that is at hand costs no timer")
    void atHand() {
      Recorder<String> recorder =
          new Recorder<>(
              1, Deadlines.put(Context.empty(), Deadline.after(Duration.ofSeconds(1), clock)));
      Mono.just("now").transform(Deadlines.hedge(AFTER, budget)).subscribe(recorder);
      assertThat(recorder.items).containsExactly("now");
      assertThat(clock.scheduled()).isZero();
    }

    @Test
    @DisplayName("DL-11 an empty end is an answer")
    void empty() {
      Recorder<String> recorder = subscribe();
      pass(AFTER);
      backend.calls.get(1).success();
      assertThat(recorder.items).isEmpty();
      assertThat(recorder.ends).containsExactly("complete");
      assertThat(backend.cancelled).hasValue(1);
      assertDone(recorder);
    }

    @Test
    @DisplayName(
        "DL-11 nothing is asked for before downstream asks, and the time counts from there")
    void fromRequest() {
      AtomicInteger asked = new AtomicInteger();
      Recorder<String> recorder =
          new Recorder<>(
              0, Deadlines.put(Context.empty(), Deadline.after(Duration.ofSeconds(9), clock)));
      backend
          .call()
          .doOnRequest(n -> asked.incrementAndGet())
          .transform(Deadlines.hedge(AFTER, budget))
          .subscribe(recorder);
      pass(AFTER);
      assertThat(clock.scheduled()).isZero();
      assertThat(asked).hasValue(0);
      recorder.subscription().request(1);
      recorder.subscription().request(1);
      assertThat(clock.pending()).isEqualTo(1);
      pass(AFTER);
      assertThat(backend.calls).hasSize(2);
      assertThat(asked).hasValue(2);
      backend.calls.get(0).success("first");
      assertThat(recorder.items).containsExactly("first");
      assertDone(recorder);
    }
  }

  @Nested
  class NotBegun {
    @Test
    @DisplayName("DL-11 no hedge starts where less than its useful time is left")
    void tooLate() {
      Recorder<String> enough = subscribe(Duration.ofMillis(100));
      pass(AFTER);
      assertThat(backend.calls).hasSize(2);
      enough.subscription().cancel();
      backend.calls.clear();
      Recorder<String> recorder = subscribe(Duration.ofMillis(99));
      pass(AFTER);
      assertThat(backend.calls).hasSize(1);
      assertThat(budget.granted()).isEqualTo(1);
      backend.calls.get(0).success("first");
      assertThat(recorder.items).containsExactly("first");
      assertDone(recorder);
    }

    @Test
    @DisplayName(
        "DL-11 the useful time is a setting, and none starts at a deadline that has passed")
    void leastUseful() {
      Deadline deadline = Deadline.after(Duration.ofMillis(100), clock);
      Recorder<String> recorder = new Recorder<>(1, Deadlines.put(Context.empty(), deadline));
      Mono<String> hedged =
          backend.call().transform(Deadlines.hedge(AFTER, budget, Duration.ZERO, "users.get"));
      hedged.subscribe(recorder);
      pass(AFTER);
      assertThat(backend.calls).hasSize(2);
      assertThat(deadline.ledger()).hasToString("[users.get before its hedge 50 ms]");
      recorder.subscription().cancel();
      Recorder<String> late = new Recorder<>(1, Deadlines.put(Context.empty(), deadline));
      hedged.subscribe(late);
      pass(AFTER);
      assertThat(backend.calls).hasSize(3);
      late.subscription().cancel();
    }

    @Test
    @DisplayName(
        "DL-11 each hedge is taken from the budget; without one left the first goes on alone")
    void budget() {
      while (budget.tryTake()) {} // nothing left
      Recorder<String> recorder = subscribe();
      pass(AFTER);
      assertThat(backend.calls).hasSize(1);
      backend.calls.get(0).success("first");
      assertThat(recorder.items).containsExactly("first");
      assertDone(recorder);
    }

    @Test
    @DisplayName("DL-11 each subscription is a request of the budget")
    void earns() {
      RetryBudget earned = RetryBudget.builder().perSecond(0).scheduler(clock).build();
      Mono<String> hedged = Mono.just("x").transform(Deadlines.hedge(AFTER, earned));
      for (int i = 0; i < 5; i++) {
        hedged.subscribe();
      }
      assertThat(earned.tryTake()).isTrue();
      assertThat(earned.tryTake()).isFalse();
    }

    @Test
    @DisplayName("DL-11 a scheduler without timers: no hedge, and the call is not disturbed")
    void noTimers() {
      clock.refuse();
      Recorder<String> recorder = subscribe();
      backend.calls.get(0).success("first");
      assertThat(recorder.items).containsExactly("first");
    }
  }

  @Nested
  class Errors {
    @Test
    @DisplayName("DL-11 the first fails while the second runs: the second is waited for")
    void firstFails() {
      Recorder<String> recorder = subscribe();
      pass(AFTER);
      backend.calls.get(0).error(new IOException("first"));
      assertThat(recorder.ends).isEmpty();
      backend.calls.get(1).success("second");
      assertThat(recorder.items).containsExactly("second");
      assertDone(recorder);
    }

    @Test
    @DisplayName("DL-11 both fail: the last error is told")
    void bothFail() {
      IOException last = new IOException("last");
      Recorder<String> recorder = subscribe();
      pass(AFTER);
      backend.calls.get(1).error(new IOException("second"));
      backend.calls.get(0).error(last);
      assertThat(recorder.ends).containsExactly(last);
      assertDone(recorder);
    }

    @Test
    @DisplayName("DL-11 an error before the second call is told at once")
    void before() {
      IOException error = new IOException();
      Recorder<String> recorder = subscribe();
      backend.calls.get(0).error(error);
      assertThat(recorder.ends).containsExactly(error);
      assertDone(recorder);
      pass(AFTER);
      assertThat(backend.calls).hasSize(1);
    }

    @Test
    @DisplayName("DL-11 a second call that throws as it starts leaves the first in the race")
    void secondThrows() {
      AtomicInteger calls = new AtomicInteger();
      Recorder<String> recorder = new Recorder<>();
      new Mono<String>() {
        @Override
        public void subscribe(CoreSubscriber<? super String> actual) {
          if (calls.incrementAndGet() == 2) {
            throw new IllegalStateException("no second");
          }
          backend.call().subscribe(actual);
        }
      }.transform(Deadlines.hedge(AFTER, budget))
          .contextWrite(c -> Deadlines.put(c, Deadline.after(Duration.ofSeconds(1), clock)))
          .subscribe(recorder);
      pass(AFTER);
      assertThat(calls).hasValue(2);
      backend.calls.get(0).success("first");
      assertThat(recorder.items).containsExactly("first");
      assertDone(recorder);
    }

    @Test
    @DisplayName("DL-11 settings out of range are named, with the value and what was expected")
    void settings() {
      assertThatThrownBy(() -> Deadlines.hedge(Duration.ZERO, budget))
          .hasMessage("hedge.after: PT0S (expected: > 0)");
      assertThatThrownBy(() -> Deadlines.hedge(AFTER, budget, Duration.ofMillis(-1), "x"))
          .hasMessage("hedge.leastUseful: PT-0.001S (expected: >= 0)");
    }

    @Test
    @DisplayName("DL-11 a null setting is refused at once, by its name")
    @SuppressWarnings("NullAway")
    void nulls() {
      assertThatThrownBy(() -> Deadlines.hedge(null, budget)).hasMessage("hedge.after");
      assertThatThrownBy(() -> Deadlines.hedge(AFTER, null)).hasMessage("budget");
      assertThatThrownBy(() -> Deadlines.hedge(AFTER, budget, null, "x"))
          .hasMessage("hedge.leastUseful");
    }
  }

  @Nested
  class Ends {
    @Test
    @DisplayName("DL-11 a cancel reaches both calls and the timer")
    void cancel() {
      Recorder<String> early = subscribe();
      early.subscription().cancel();
      assertThat(backend.cancelled).hasValue(1);
      assertThat(clock.pending()).isZero();
      Recorder<String> recorder = subscribe();
      pass(AFTER);
      recorder.subscription().cancel();
      assertThat(backend.cancelled).hasValue(3);
      assertThat(recorder.ends).isEmpty();
    }

    @Test
    @DisplayName("DL-4 the deadline cancels both calls")
    void deadline() {
      Recorder<String> recorder = new Recorder<>();
      backend
          .call()
          .transform(Deadlines.hedge(AFTER, budget))
          .transform(Deadlines.within(Duration.ofMillis(800), "users.get", clock))
          .subscribe(recorder);
      pass(AFTER);
      pass(Duration.ofMillis(750));
      assertThat(recorder.ends)
          .singleElement()
          .asString()
          .endsWith(
              "users.get: deadline of 800 ms exceeded after 800 ms:"
                  + " pipeline before its hedge 50 ms");
      assertThat(backend.cancelled).hasValue(2);
      assertDone(recorder);
    }

    @Test
    @DisplayName(
        "DL-11 an answer that comes after the other's is discarded, an error of no interest")
    void late() {
      List<CoreSubscriber<? super String>> calls = new ArrayList<>();
      List<String> discarded = new ArrayList<>();
      Mono<String> deaf = // to its cancel
          new Mono<>() {
            @Override
            public void subscribe(CoreSubscriber<? super String> actual) {
              calls.add(actual);
              actual.onSubscribe(Operators.emptySubscription());
            }
          };
      List<Throwable> dropped = new ArrayList<>();
      Mono<String> hedged =
          deaf.transform(Deadlines.hedge(AFTER, budget))
              .contextWrite(c -> Deadlines.put(c, Deadline.after(Duration.ofSeconds(9), clock)));
      Hooks.onErrorDropped(dropped::add);
      try {
        Recorder<String> recorder = new Recorder<>();
        hedged.doOnDiscard(String.class, discarded::add).subscribe(recorder);
        pass(AFTER);
        calls.get(1).onNext("second");
        calls.get(0).onNext("late");
        assertThat(discarded).containsExactly("late");
        assertDone(recorder);
        hedged.subscribe(new Recorder<>());
        pass(AFTER);
        calls.get(2).onNext("first");
        calls.get(3).onError(new IOException("late"));
        assertThat(dropped).isEmpty();
        Recorder<String> left = new Recorder<>();
        hedged.subscribe(left);
        left.subscription().cancel();
        calls.get(4).onError(new IOException("after the cancel"));
        assertThat(dropped).hasSize(1);
        assertThat(left.ends).isEmpty();
      } finally {
        Hooks.resetOnErrorDropped();
      }
    }
  }
}
