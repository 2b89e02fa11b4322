package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.test.StepVerifier;

@Timeout(60)
class NestedBoundsTest {
  private static final Duration BUDGET = Duration.ofMillis(800);

  private final ManualScheduler clock = new ManualScheduler();

  @Test
  @DisplayName("DL-9 nested bounds for the same instant share one timer")
  void oneTimer() {
    Recorder<Integer> recorder = new Recorder<>();
    Mono.<Integer>never()
        .transform(Deadlines.within(BUDGET))
        .flux()
        .transform(Deadlines.within(BUDGET.plusMillis(1)))
        .next()
        .transform(Deadlines.within(BUDGET, "outer", clock))
        .subscribe(recorder);
    assertThat(clock.scheduled()).isEqualTo(1);
    clock.pass(BUDGET);
    clock.fire();
    assertThat(recorder.ends).hasSize(1);
    assertThat(clock.scheduled()).isEqualTo(1);
    assertThat(clock.pending()).isZero();
  }

  @Test
  @DisplayName("DL-9 the timer runs until the last of the nested bounds is gone")
  void innerEndsFirst() {
    Recorder<Integer> recorder = new Recorder<>();
    Mono.just(1)
        .hide()
        .transform(Deadlines.within(BUDGET))
        .then(Mono.<Integer>never())
        .transform(Deadlines.within(BUDGET, "outer", clock))
        .subscribe(recorder);
    assertThat(clock.pending()).isEqualTo(1);
    clock.pass(BUDGET);
    clock.fire();
    assertThat(recorder.ends).hasSize(1);
  }

  @Test
  @DisplayName("DL-9 the inner bound is told first, and its fallback still gets through")
  void partialAnswer() {
    StepVerifier.withVirtualTime(
            () ->
                Flux.interval(Duration.ofMillis(300))
                    .transform(Deadlines.within(BUDGET))
                    .onErrorResume(DeadlineExceededException.class, e -> Flux.just(-1L))
                    .collectList()
                    .transform(Deadlines.within(BUDGET)))
        .thenAwait(BUDGET)
        .expectNext(List.of(0L, 1L, -1L))
        .verifyComplete();
  }

  @Test
  @DisplayName("DL-9 bounds are told from the innermost to the outermost")
  void order() {
    List<String> told = new ArrayList<>();
    Mono.never()
        .transform(Deadlines.within(BUDGET, "inner"))
        .onErrorResume(e -> tell(told, "inner").then(Mono.never()))
        .transform(Deadlines.within(BUDGET, "middle"))
        .onErrorResume(e -> tell(told, "middle").then(Mono.never()))
        .transform(Deadlines.within(BUDGET, "outer", clock))
        .onErrorResume(e -> tell(told, "outer"))
        .subscribe();
    clock.pass(BUDGET);
    clock.fire();
    assertThat(told).containsExactly("inner", "middle", "outer");
  }

  @Test
  @DisplayName("DL-9 side by side under one bound each one's fallback gets through")
  void sideBySide() {
    Mono<String> slow =
        Mono.<String>never()
            .transform(Deadlines.within(BUDGET))
            .onErrorResume(e -> Mono.just("partial"));
    StepVerifier.withVirtualTime(
            () -> Mono.zip(slow, slow, (a, b) -> a + "+" + b).transform(Deadlines.within(BUDGET)))
        .thenAwait(BUDGET)
        .expectNext("partial+partial")
        .verifyComplete();
  }

  @Test
  @DisplayName("DL-4 an endless retry between two bounds is ended by the outer one")
  void endlessRetry() {
    AtomicInteger subscribed = new AtomicInteger();
    StepVerifier.withVirtualTime(
            () ->
                Mono.never()
                    .doOnSubscribe(s -> subscribed.incrementAndGet())
                    .transform(Deadlines.within(BUDGET, "inner"))
                    .retry(10_000) // as good as endless, but a red test ends
                    .transform(Deadlines.within(BUDGET, "outer")))
        .thenAwait(BUDGET)
        .verifyErrorMessage("outer: deadline of 800 ms exceeded after 800 ms");
    assertThat(subscribed).hasValue(1);
  }

  @Test
  @DisplayName("DL-4 an endless retry ends though it holds the thread that the timer waits for")
  void retryHoldsTheThread() {
    AtomicInteger calls = new AtomicInteger();
    Recorder<Object> recorder = new Recorder<>();
    Deadlines.defer(
            deadline -> {
              calls.incrementAndGet();
              clock.pass(Duration.ofMillis(300)); // and no timer ever fires
              return Mono.error(new IllegalStateException("boom"));
            })
        .retry(10_000)
        .transform(Deadlines.within(BUDGET, "outer", clock))
        .subscribe(recorder);
    assertThat(calls).hasValue(3);
    assertThat(recorder.ends)
        .singleElement()
        .asInstanceOf(InstanceOfAssertFactories.throwable(DeadlineExceededException.class))
        .hasMessageStartingWith("outer: ");
    assertThat(recorder.faults).isEmpty();
    assertThat(clock.pending()).isZero();
  }

  @Test
  @DisplayName("DL-9 a subscriber that throws does not keep the others from being told")
  void throwingSubscriber() {
    Deadline deadline = Deadline.after(BUDGET, clock);
    Recorder<Object> first = new Recorder<>();
    Mono.never().transform(Deadlines.of(deadline)).subscribe(first);
    Mono.never()
        .transform(Deadlines.of(deadline))
        .subscribe(
            new reactor.core.publisher.BaseSubscriber<>() {
              @Override
              protected void hookOnError(Throwable throwable) {
                throw new IllegalStateException("thrown by the test's subscriber");
              }
            });
    clock.pass(BUDGET);
    clock.fire();
    assertThat(first.ends).hasSize(1);
    assertThat(clock.pending()).isZero();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  @DisplayName(
      "DL-9 the outer bound waits for an inner one that is handing on an item, not for long")
  void itemUnderWay(boolean consumerGoesOn) throws InterruptedException {
    CountDownLatch inConsumer = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    Sinks.Many<Integer> items = Sinks.many().unicast().onBackpressureBuffer();
    Recorder<List<Integer>> recorder = new Recorder<>();
    items
        .asFlux()
        .transform(Deadlines.within(BUDGET))
        .doOnNext(
            item -> {
              inConsumer.countDown();
              await(goOn);
            })
        .onErrorResume(e -> Flux.just(-1))
        .collectList()
        .transform(Deadlines.within(BUDGET, "outer", clock))
        .subscribe(recorder);
    Thread emitter = new Thread(() -> items.tryEmitNext(1));
    emitter.start();
    await(inConsumer);
    clock.pass(BUDGET);
    clock.fire();
    assertThat(recorder.ends).isEmpty();
    if (consumerGoesOn) {
      goOn.countDown();
      emitter.join();
      assertThat(recorder.items).containsExactly(List.of(1, -1));
      assertThat(recorder.ends).containsExactly("complete");
    } else {
      clock.pass(Duration.ofMillis(5));
      clock.fire();
      assertThat(recorder.ends).singleElement().isInstanceOf(DeadlineExceededException.class);
      goOn.countDown();
      emitter.join();
    }
    assertThat(recorder.faults).isEmpty();
  }

  private static Mono<Object> tell(List<String> told, String who) {
    return Mono.fromRunnable(() -> told.add(who));
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
