package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;

/** Signal against timer against cancel, in many interleavings that a seed spreads. */
@Timeout(300)
class RaceTest {
  private static final Duration BUDGET = Duration.ofMillis(800);
  private static final int ROUNDS = 600;

  /** An upstream that a test signals by hand, from any thread, as a real one would. */
  private static final class Upstream implements Subscription {
    final AtomicInteger cancelled = new AtomicInteger();
    volatile @Nullable CoreSubscriber<? super Integer> subscriber;

    CoreSubscriber<? super Integer> subscriber() {
      return Objects.requireNonNull(subscriber);
    }

    Flux<Integer> flux() {
      return new Flux<>() {
        @Override
        public void subscribe(CoreSubscriber<? super Integer> actual) {
          subscriber = actual;
          actual.onSubscribe(Upstream.this);
        }
      };
    }

    Mono<Integer> mono() {
      return new Mono<>() {
        @Override
        public void subscribe(CoreSubscriber<? super Integer> actual) {
          subscriber = actual;
          actual.onSubscribe(Upstream.this);
        }
      };
    }

    @Override
    public void request(long n) {}

    @Override
    public void cancel() {
      cancelled.incrementAndGet();
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {11, 12, 13})
  @DisplayName("DL-4 Mono: one of value, expiry and cancel wins, and nothing is left")
  void mono(long seed) throws Exception {
    Random random = new Random(seed);
    int[] outcomes = new int[3];
    for (int round = 0; round < ROUNDS; round++) {
      ManualScheduler clock = new ManualScheduler();
      Upstream upstream = new Upstream();
      Recorder<Integer> recorder = quiet();
      upstream.mono().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(recorder);
      race(
          random,
          () -> {
            upstream.subscriber().onNext(1);
            upstream.subscriber().onComplete();
          },
          () -> expire(clock),
          round % 2 == 0 ? recorder.subscription()::cancel : () -> {});
      assertThat(recorder.faults).isEmpty();
      assertThat(clock.pending()).isZero();
      if (!recorder.items.isEmpty()) {
        outcomes[0]++;
        assertThat(recorder.ends).containsExactly("complete");
      } else if (!recorder.ends.isEmpty()) {
        outcomes[1]++;
        assertThat(recorder.ends.get(0)).isInstanceOf(DeadlineExceededException.class);
        assertThat(upstream.cancelled).hasPositiveValue();
      } else {
        outcomes[2]++;
        assertThat(upstream.cancelled).hasPositiveValue();
      }
    }
    assertThat(outcomes).doesNotContain(0); // else the seed spreads nothing
  }

  @ParameterizedTest
  @ValueSource(longs = {21, 22, 23})
  @DisplayName("DL-4 Flux: no signal overlaps, no item is lost before the end, nothing is left")
  void flux(long seed) throws Exception {
    Random random = new Random(seed);
    int cut = 0;
    for (int round = 0; round < ROUNDS; round++) {
      ManualScheduler clock = new ManualScheduler();
      Upstream upstream = new Upstream();
      Recorder<Integer> recorder = quiet();
      upstream.flux().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(recorder);
      race(
          random,
          () -> {
            for (int i = 0; i < 40; i++) {
              upstream.subscriber().onNext(i);
            }
            upstream.subscriber().onComplete();
          },
          () -> expire(clock),
          round % 3 == 0 ? recorder.subscription()::cancel : () -> {});
      assertThat(recorder.faults).isEmpty();
      assertThat(clock.pending()).isZero();
      int got = recorder.items.size();
      assertThat(recorder.items).isEqualTo(IntStream.range(0, got).boxed().toList());
      boolean expired =
          !recorder.ends.isEmpty() && recorder.ends.get(0) instanceof DeadlineExceededException;
      if (expired) {
        cut++;
        assertThat(upstream.cancelled).hasPositiveValue();
      } else if (round % 3 != 0) {
        assertThat(recorder.ends).containsExactly("complete");
        assertThat(got).isEqualTo(40);
      }
    }
    assertThat(cut).isBetween(1, ROUNDS - 1);
  }

  @ParameterizedTest
  @ValueSource(longs = {31, 32, 33})
  @DisplayName("DL-4 subscription against expiry: upstream is cancelled or never subscribed")
  void subscription(long seed) throws Exception {
    Random random = new Random(seed);
    for (int round = 0; round < ROUNDS; round++) {
      ManualScheduler clock = new ManualScheduler();
      Upstream upstream = new Upstream();
      Recorder<Integer> recorder = quiet();
      Deadline deadline = Deadline.after(BUDGET, clock);
      boolean mono = round % 2 == 0;
      race(
          random,
          () -> {
            if (mono) {
              upstream.mono().transform(Deadlines.of(deadline)).subscribe(recorder);
            } else {
              upstream.flux().transform(Deadlines.of(deadline)).subscribe(recorder);
            }
          },
          () -> expire(clock));
      expire(clock); // where the timer was started after the clock had been moved
      assertThat(recorder.faults).isEmpty();
      assertThat(recorder.ends).hasSize(1);
      assertThat(upstream.cancelled.get() > 0).isEqualTo(upstream.subscriber != null);
      assertThat(clock.pending()).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {41, 42, 43})
  @DisplayName("DL-9 an item under way at the instant never costs the partial answer")
  void partialAnswer(long seed) throws Exception {
    Random random = new Random(seed);
    int partial = 0;
    for (int round = 0; round < ROUNDS; round++) {
      ManualScheduler clock = new ManualScheduler();
      Upstream upstream = new Upstream();
      Recorder<List<Integer>> recorder = quiet();
      AtomicBoolean completing = new AtomicBoolean();
      upstream
          .flux()
          .transform(Deadlines.within(BUDGET, "inner"))
          .onErrorResume(DeadlineExceededException.class, e -> Flux.just(-1))
          .collectList()
          .transform(Deadlines.within(BUDGET, "outer", clock))
          .subscribe(recorder);
      race(
          random,
          () -> {
            for (int i = 0; i < 40; i++) {
              upstream.subscriber().onNext(i);
            }
            completing.set(true);
            upstream.subscriber().onComplete();
          },
          () -> expire(clock));
      assertThat(recorder.faults).isEmpty();
      if (recorder.items.isEmpty()) { // the whole answer had left the inner bound, and came late
        assertThat(recorder.ends).singleElement().isInstanceOf(DeadlineExceededException.class);
        assertThat(completing).isTrue();
        continue;
      }
      assertThat(recorder.ends).containsExactly("complete");
      List<Integer> answer = recorder.items.get(0);
      if (answer.contains(-1)) {
        partial++;
        assertThat(answer.indexOf(-1)).isEqualTo(answer.size() - 1);
      } else {
        assertThat(answer).hasSize(40);
      }
    }
    assertThat(partial).isBetween(1, ROUNDS - 1);
  }

  @ParameterizedTest
  @ValueSource(longs = {51, 52, 53})
  @DisplayName("DL-6 gap timeout: no signal overlaps, one end, nothing is left")
  void gap(long seed) throws Exception {
    Random random = new Random(seed);
    for (int round = 0; round < ROUNDS; round++) {
      ManualScheduler clock = new ManualScheduler();
      Upstream upstream = new Upstream();
      Context context =
          quietContext()
              .putAll(
                  Deadlines.put(Context.empty(), Deadline.after(Duration.ofDays(1), clock))
                      .readOnly());
      Recorder<Integer> recorder = new Recorder<>(20, context);
      upstream.flux().transform(Deadlines.gapTimeout(BUDGET)).subscribe(recorder);
      race(
          random,
          () -> {
            for (int i = 0; i < 40; i++) {
              upstream.subscriber().onNext(i);
            }
            upstream.subscriber().onComplete();
          },
          () -> expire(clock),
          () -> recorder.subscription().request(20));
      assertThat(recorder.faults).isEmpty();
      assertThat(recorder.ends).hasSize(1);
      assertThat(clock.pending()).isZero();
      int got = recorder.items.size();
      assertThat(recorder.items).isEqualTo(IntStream.range(0, got).boxed().toList());
    }
  }

  private static void expire(ManualScheduler clock) {
    clock.pass(BUDGET);
    clock.fire();
  }

  private static <T> Recorder<T> quiet() {
    return new Recorder<>(Long.MAX_VALUE, quietContext());
  }

  /** Late signals are part of these races, and not worth a line in the log each. */
  private static Context quietContext() {
    return Context.of(
        "reactor.onNextDropped.local", (java.util.function.Consumer<Object>) item -> {});
  }

  /** Starts all at once, in an order and each after a wait that the seed chose. */
  private static void race(Random random, Runnable... all) throws Exception {
    Runnable[] actors = all.clone();
    Collections.shuffle(Arrays.asList(actors), random); // one core runs the last to come first
    CyclicBarrier start = new CyclicBarrier(actors.length);
    AtomicInteger failures = new AtomicInteger();
    Thread[] threads = new Thread[actors.length];
    for (int i = 0; i < actors.length; i++) {
      int spin = random.nextInt(random.nextBoolean() ? 200 : 20_000);
      Runnable actor = actors[i];
      threads[i] =
          new Thread(
              () -> {
                try {
                  start.await();
                  for (int n = 0; n < spin; n++) {
                    Thread.onSpinWait();
                  }
                  actor.run();
                } catch (InterruptedException | BrokenBarrierException | RuntimeException e) {
                  failures.incrementAndGet();
                }
              });
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(failures).hasValue(0);
  }
}
