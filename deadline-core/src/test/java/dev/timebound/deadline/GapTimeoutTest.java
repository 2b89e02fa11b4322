package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;
import reactor.test.publisher.TestPublisher;
import reactor.util.context.Context;

@Timeout(60)
class GapTimeoutTest {
  private static final Duration GAP = Duration.ofSeconds(5);

  private final ManualScheduler clock = new ManualScheduler();
  private final Context onClock =
      Deadlines.put(Context.empty(), Deadline.after(Duration.ofDays(1), clock));

  private void pass(Duration time) {
    clock.pass(time);
    clock.fire();
  }

  @Nested
  class Waiting {
    @Test
    @DisplayName("DL-6 asked and nothing sent: fails after the gap, and upstream is cancelled")
    void firstItem() {
      TestPublisher<Integer> source = TestPublisher.create();
      StepVerifier.withVirtualTime(
              () -> source.flux().name("rows").transform(Deadlines.gapTimeout(GAP)))
          .expectSubscription()
          .expectNoEvent(GAP.minusMillis(1))
          .thenAwait(Duration.ofMillis(1))
          .verifyErrorSatisfies(
              e ->
                  assertThat(e)
                      .isInstanceOf(GapTimeoutException.class)
                      .isNotInstanceOf(DeadlineExceededException.class)
                      .hasMessage("rows: asked and received nothing for 5 s (after 0 items)"));
      source.assertCancelled();
    }

    @Test
    @DisplayName("DL-6 an item starts the time anew, to the millisecond")
    void betweenItems() {
      StepVerifier.withVirtualTime(
              () ->
                  Flux.interval(Duration.ofSeconds(4))
                      .take(3)
                      .concatWith(Flux.never())
                      .transform(Deadlines.gapTimeout(GAP, "ticks")))
          .thenAwait(Duration.ofSeconds(12))
          .expectNext(0L, 1L, 2L)
          .expectNoEvent(GAP.minusMillis(1))
          .thenAwait(Duration.ofMillis(1))
          .verifyErrorSatisfies(
              e -> {
                GapTimeoutException gap = (GapTimeoutException) e;
                assertThat(gap.operation()).isEqualTo("ticks");
                assertThat(gap.gap()).isEqualTo(GAP);
                assertThat(gap.received()).isEqualTo(3);
              });
    }

    @Test
    @DisplayName("DL-6 a Mono is watched from its request to its value")
    void mono() {
      StepVerifier.withVirtualTime(() -> Mono.never().transform(Deadlines.gapTimeout(GAP)))
          .expectSubscription()
          .expectNoEvent(GAP.minusMillis(1))
          .thenAwait(Duration.ofMillis(1))
          .verifyError(GapTimeoutException.class);
      Mono<Integer> mono = Mono.just(1).hide().transform(Deadlines.gapTimeout(GAP));
      assertThat(mono.block()).isEqualTo(1);
    }

    @Test
    @DisplayName("DL-6 asking for more while waiting does not start the time anew")
    void askingMore() {
      Recorder<Integer> recorder = new Recorder<>(1, onClock);
      Flux.<Integer>never().transform(Deadlines.gapTimeout(GAP)).subscribe(recorder);
      pass(Duration.ofSeconds(3));
      recorder.subscription().request(1);
      pass(Duration.ofSeconds(2));
      assertThat(recorder.ends).singleElement().isInstanceOf(GapTimeoutException.class);
      assertThat(clock.pending()).isZero();
    }

    @Test
    @DisplayName("DL-6 a subscription that upstream never confirms counts as silence")
    void neverSubscribed() {
      Recorder<Integer> recorder = new Recorder<>(1, onClock);
      Flux.<Integer>from(s -> {}).transform(Deadlines.gapTimeout(GAP)).subscribe(recorder);
      pass(GAP);
      assertThat(recorder.ends).hasSize(1);
    }
  }

  @Nested
  class NotWaiting {
    @Test
    @DisplayName("DL-6 nothing asked for: no time counts and no timer runs")
    void nothingAsked() {
      TestPublisher<Integer> source = TestPublisher.create();
      Recorder<Integer> recorder = new Recorder<>(0, onClock);
      source.flux().transform(Deadlines.gapTimeout(GAP)).subscribe(recorder);
      assertThat(clock.pending()).isZero();
      pass(GAP.multipliedBy(10));
      recorder.subscription().request(1);
      pass(GAP.minusNanos(1));
      source.next(1);
      pass(GAP.multipliedBy(10));
      pass(GAP.multipliedBy(10));
      assertThat(recorder.ends).isEmpty();
      assertThat(clock.pending()).isZero();
      recorder.subscription().request(1);
      pass(GAP.minusNanos(1));
      assertThat(recorder.ends).isEmpty();
      pass(Duration.ofNanos(1));
      assertThat(recorder.ends).singleElement().isInstanceOf(GapTimeoutException.class);
      source.assertNoSubscribers();
    }

    @Test
    @DisplayName("DL-6 a request right before the old timer fires starts its own gap")
    void requestJustBeforeTheTimer() {
      TestPublisher<Integer> source = TestPublisher.create();
      Recorder<Integer> recorder = new Recorder<>(1, onClock);
      source.flux().transform(Deadlines.gapTimeout(GAP)).subscribe(recorder);
      source.next(1);
      pass(GAP.minusNanos(1));
      recorder.subscription().request(1);
      pass(Duration.ofNanos(1));
      assertThat(recorder.ends).isEmpty();
      pass(GAP.minusNanos(1));
      assertThat(recorder.ends).hasSize(1);
    }

    @Test
    @DisplayName("DL-6 a slow consumer never trips it, with bounded demand")
    void slowConsumer() {
      StepVerifier.withVirtualTime(
              () ->
                  Flux.range(1, 5)
                      .transform(Deadlines.gapTimeout(GAP))
                      .concatMap(i -> Mono.delay(GAP.multipliedBy(3)).thenReturn(i), 1))
          .thenAwait(GAP.multipliedBy(15))
          .expectNext(1, 2, 3, 4, 5)
          .verifyComplete();
    }

    @Test
    @DisplayName("DL-6 a consumer busy with an item never trips it, with unbounded demand")
    void busyConsumer() {
      TestPublisher<Integer> source = TestPublisher.create();
      Recorder<Integer> recorder = new Recorder<>(Long.MAX_VALUE, onClock);
      source
          .flux()
          .transform(Deadlines.gapTimeout(GAP))
          .doOnNext(item -> pass(GAP.multipliedBy(3))) // the timer fires meanwhile
          .subscribe(recorder);
      source.next(1);
      assertThat(recorder.items).containsExactly(1);
      pass(GAP.minusNanos(1));
      source.next(2);
      assertThat(recorder.items).containsExactly(1, 2);
      pass(GAP);
      assertThat(recorder.ends).hasSize(1);
      assertThat(recorder.faults).isEmpty();
    }
  }

  @Nested
  class Cost {
    @Test
    @DisplayName("DL-6 items start no timers: one a gap at most")
    void noTimerPerItem() {
      TestPublisher<Integer> source = TestPublisher.create();
      Recorder<Integer> recorder = new Recorder<>(Long.MAX_VALUE, onClock);
      source.flux().transform(Deadlines.gapTimeout(GAP)).subscribe(recorder);
      for (int i = 0; i < 10_000; i++) {
        source.next(i);
        pass(Duration.ofMillis(1));
      }
      assertThat(recorder.items).hasSize(10_000);
      assertThat(clock.scheduled()).isLessThanOrEqualTo(3);
      source.complete();
      assertThat(clock.pending()).isZero();
    }

    @Test
    @DisplayName("DL-6 items that come fast do not read the clock, and silence after them is seen")
    void fastItems() {
      TestPublisher<Integer> source = TestPublisher.create();
      Recorder<Integer> recorder = new Recorder<>(Long.MAX_VALUE, onClock);
      source.flux().transform(Deadlines.gapTimeout(GAP)).subscribe(recorder);
      for (int i = 0; i < 50_000; i++) {
        source.next(i);
        pass(Duration.ofNanos(200_000));
      }
      assertThat(recorder.items).hasSize(50_000);
      assertThat(clock.readings())
          .isLessThan(26_000); // of the first gap, when it was not known yet
      assertThat(clock.scheduled()).isLessThan(25);
      pass(GAP.dividedBy(32)); // a last item at any place between two looks
      source.next(1);
      for (int i = 0; i < 100; i++) {
        assertThat(recorder.ends).isEmpty();
        pass(GAP.minusNanos(1).dividedBy(100));
      }
      assertThat(recorder.ends).isEmpty();
      pass(GAP.dividedBy(8).plusMillis(1));
      assertThat(recorder.ends).singleElement().isInstanceOf(GapTimeoutException.class);
      assertThat(clock.pending()).isZero();
    }

    @Test
    @DisplayName("DL-6 completed, failed and cancelled sequences leave no timer")
    void nothingLeft() {
      TestPublisher<Integer> source = TestPublisher.create();
      Flux<Integer> watched = source.flux().transform(Deadlines.gapTimeout(GAP));
      Recorder<Integer> completed = new Recorder<>(1, onClock);
      watched.subscribe(completed);
      source.complete();
      Recorder<Integer> cancelled = new Recorder<>(1, onClock);
      Flux.<Integer>never().transform(Deadlines.gapTimeout(GAP)).subscribe(cancelled);
      cancelled.subscription().cancel();
      Recorder<Integer> failed = new Recorder<>(1, onClock);
      Mono.<Integer>error(new IllegalStateException())
          .transform(Deadlines.gapTimeout(GAP))
          .subscribe(failed);
      assertThat(completed.ends).containsExactly("complete");
      assertThat(cancelled.ends).isEmpty();
      assertThat(failed.ends).hasSize(1);
      assertThat(clock.pending()).isZero();
    }

    @Test
    @DisplayName("DL-6 a scheduler that takes no timer fails the sequence")
    void refusingScheduler() {
      clock.refuse();
      AtomicInteger subscribed = new AtomicInteger();
      Recorder<Integer> recorder = new Recorder<>(1, onClock);
      Mono.fromSupplier(subscribed::incrementAndGet)
          .transform(Deadlines.gapTimeout(GAP))
          .subscribe(recorder);
      assertThat(recorder.ends).hasSize(1);
      assertThat(subscribed).hasValue(0);
    }

    @ParameterizedTest
    @ValueSource(strings = {"PT0S", "PT-1S"})
    @DisplayName("DL-6 a gap that is not positive is refused at once")
    void validated(String gap) {
      assertThatThrownBy(() -> Deadlines.gapTimeout(Duration.parse(gap)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("gapTimeout: " + gap + " (expected: > 0)");
    }
  }
}
