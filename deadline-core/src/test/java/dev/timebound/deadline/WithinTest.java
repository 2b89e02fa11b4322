package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Operators;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;
import reactor.test.publisher.TestPublisher;
import reactor.util.context.Context;

@Timeout(60)
class WithinTest {
  private static final Duration BUDGET = Duration.ofMillis(800);

  private final ManualScheduler clock = new ManualScheduler();

  @Nested
  class Shape {
    @Test
    @DisplayName("DL-3 a Mono stays a Mono and a Flux a Flux, as typed operators")
    void monoInMonoOut() {
      Mono<String> mono = Mono.just("a").hide().transform(Deadlines.within(BUDGET));
      Flux<Integer> flux = Flux.range(1, 3).transformDeferred(Deadlines.within(BUDGET, "three"));
      assertThat(mono.block()).isEqualTo("a");
      assertThat(flux.collectList().block()).containsExactly(1, 2, 3);
      assertThat(Deadlines.<String>within(BUDGET).apply(Mono.just("a"))).isInstanceOf(Mono.class);
      assertThat(Deadlines.<String>within(BUDGET).apply(s -> {})).isInstanceOf(Flux.class);
    }

    @Test
    @DisplayName("DL-3 an empty Mono, an empty Flux and an error pass through")
    void passesThrough() {
      Mono<Integer> failed = Mono.error(new IllegalStateException("boom"));
      StepVerifier.create(Mono.empty().hide().transform(Deadlines.within(BUDGET))).verifyComplete();
      StepVerifier.create(Flux.empty().hide().transform(Deadlines.within(BUDGET))).verifyComplete();
      StepVerifier.create(failed.transform(Deadlines.within(BUDGET))).verifyErrorMessage("boom");
      StepVerifier.create(failed.flux().transform(Deadlines.within(BUDGET)))
          .verifyErrorMessage("boom");
    }

    @Test
    @DisplayName("DL-3 a bound of none adds nothing")
    void none() {
      List<Deadline> seen = new ArrayList<>();
      Mono.deferContextual(ctx -> Mono.just(seen.add(Deadlines.current(ctx))))
          .transform(Deadlines.of(Deadline.none()))
          .block();
      Flux.deferContextual(ctx -> Mono.just(seen.add(Deadlines.current(ctx))))
          .transform(Deadlines.of(Deadline.none()))
          .blockLast();
      assertThat(seen).containsExactly(Deadline.none(), Deadline.none());
    }

    @Test
    @DisplayName("DL-3 demand passes through a bounded Flux, and is kept until upstream is there")
    void demand() {
      TestPublisher<Integer> source = TestPublisher.create();
      StepVerifier.create(source.flux().transform(Deadlines.within(BUDGET)), 0)
          .thenRequest(2)
          .then(() -> source.next(1, 2))
          .expectNext(1, 2)
          .then(() -> source.assertMaxRequested(2).assertMinRequested(0))
          .thenRequest(1)
          .then(() -> source.next(3).complete())
          .expectNext(3)
          .verifyComplete();
      source.assertNoRequestOverflow();
    }

    @ParameterizedTest
    @ValueSource(longs = {0, -1})
    @DisplayName("GR-1 a request that is not positive fails the sequence and cancels upstream")
    void badRequest(long n) {
      TestPublisher<Integer> source = TestPublisher.create();
      Recorder<Integer> flux = new Recorder<>(1, Context.empty());
      source.flux().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(flux);
      flux.subscription().request(n);
      Recorder<Integer> mono = new Recorder<>(1, Context.empty());
      source.mono().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(mono);
      mono.subscription().request(n);
      assertThat(flux.ends).singleElement().isInstanceOf(IllegalArgumentException.class);
      assertThat(mono.ends).singleElement().isInstanceOf(IllegalArgumentException.class);
      source.assertNoSubscribers();
      assertThat(clock.pending()).isZero();
    }
  }

  @Nested
  class Expiry {
    @Test
    @DisplayName("DL-4 a Mono that does not answer in time fails, and its work is cancelled")
    void monoExpires() {
      TestPublisher<Integer> source = TestPublisher.create();
      StepVerifier.withVirtualTime(
              () -> source.mono().name("profile").transform(Deadlines.within(BUDGET)))
          .expectSubscription()
          .expectNoEvent(Duration.ofMillis(799))
          .then(() -> source.assertSubscribers(1))
          .thenAwait(Duration.ofMillis(1))
          .verifyErrorSatisfies(
              e ->
                  assertThat(e)
                      .isInstanceOf(DeadlineExceededException.class)
                      .hasMessage("profile: deadline of 800 ms exceeded after 800 ms"));
      source.assertCancelled();
    }

    @Test
    @DisplayName("DL-4 a Flux is bounded to its end, however lively it is")
    void fluxExpires() {
      AtomicInteger cancelled = new AtomicInteger();
      StepVerifier.withVirtualTime(
              () ->
                  Flux.interval(Duration.ofMillis(300))
                      .doOnCancel(cancelled::incrementAndGet)
                      .transform(Deadlines.within(BUDGET, "ticks")))
          .thenAwait(BUDGET)
          .expectNext(0L, 1L)
          .verifyErrorMessage("ticks: deadline of 800 ms exceeded after 800 ms");
      assertThat(cancelled).hasValue(1);
    }

    @Test
    @DisplayName("DL-4 a signal that came before the timer wins, though the instant has passed")
    void signalWins() {
      Sinks.One<String> value = Sinks.one();
      Recorder<String> mono = new Recorder<>();
      value.asMono().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(mono);
      Recorder<String> flux = new Recorder<>();
      value.asMono().flux().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(flux);
      clock.pass(BUDGET);
      value.tryEmitValue("in time");
      clock.fire();
      assertThat(mono.items).containsExactly("in time");
      assertThat(mono.ends).containsExactly("complete");
      assertThat(flux.items).containsExactly("in time");
      assertThat(flux.ends).containsExactly("complete");
      assertThat(clock.pending()).isZero();
    }

    @Test
    @DisplayName("DL-4 a signal after the expiry is dropped")
    void lateSignal() {
      TestPublisher<Integer> source =
          TestPublisher.createNoncompliant(TestPublisher.Violation.CLEANUP_ON_TERMINATE);
      List<Object> dropped = new ArrayList<>();
      Recorder<Integer> recorder =
          new Recorder<>(
              Long.MAX_VALUE,
              Operators.enableOnDiscard(
                  Context.of("reactor.onNextDropped.local", (Consumer<Object>) dropped::add),
                  dropped::add));
      source.flux().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(recorder);
      source.next(1);
      clock.pass(BUDGET);
      clock.fire();
      source.next(2);
      source.complete();
      assertThat(recorder.items).containsExactly(1);
      assertThat(recorder.ends).hasSize(1);
      assertThat(recorder.faults).isEmpty();
      assertThat(dropped).containsExactly(2);
    }

    @ParameterizedTest
    @ValueSource(longs = {0, -5})
    @DisplayName("DL-4 an expired deadline fails before anything is subscribed, without a timer")
    void expiredSubscribesNothing(long millis) {
      AtomicInteger subscribed = new AtomicInteger();
      Flux<Integer> source =
          Flux.defer(
              () -> {
                subscribed.incrementAndGet();
                return Flux.just(1);
              });
      Duration given = Duration.ofMillis(millis);
      StepVerifier.create(source.transform(Deadlines.within(given, "op", clock)))
          .verifyError(DeadlineExceededException.class);
      StepVerifier.create(source.next().transform(Deadlines.within(given, "op", clock)))
          .verifyError(DeadlineExceededException.class);
      StepVerifier.create(
              source.next().transform(Deadlines.of(Deadline.after(given, clock), "fixed")))
          .verifyErrorSatisfies(e -> assertThat(e).hasMessageStartingWith("fixed: deadline of "));
      assertThat(subscribed).hasValue(0);
      assertThat(clock.scheduled()).isZero();
    }

    @Test
    @DisplayName("DL-4 it is signalled even while upstream blocks in its subscribe")
    void upstreamBlocksInSubscribe() {
      Recorder<Integer> recorder = new Recorder<>();
      TestPublisher<Integer> inner = TestPublisher.create();
      Mono.defer(
              () -> {
                clock.pass(BUDGET);
                clock.fire();
                assertThat(recorder.ends).hasSize(1);
                return inner.mono();
              })
          .transform(Deadlines.within(BUDGET, "op", clock))
          .subscribe(recorder);
      assertThat(recorder.ends).singleElement().isInstanceOf(DeadlineExceededException.class);
      assertThat(recorder.faults).isEmpty();
      inner.assertCancelled();
    }

    @Test
    @DisplayName("DL-4 a cancel stops the timer and upstream, and is neither success nor failure")
    void cancel() {
      TestPublisher<Integer> source = TestPublisher.create();
      Recorder<Integer> mono = new Recorder<>();
      Recorder<Integer> flux = new Recorder<>();
      source.mono().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(mono);
      source.flux().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(flux);
      assertThat(clock.pending()).isEqualTo(2);
      mono.subscription().cancel();
      flux.subscription().cancel();
      assertThat(clock.pending()).isZero();
      assertThat(mono.ends).isEmpty();
      assertThat(flux.ends).isEmpty();
      source.assertNoSubscribers();
    }

    @Test
    @DisplayName("DL-4 cancelled in onSubscribe nothing is subscribed and no timer started")
    void cancelledInOnSubscribe() {
      AtomicInteger subscribed = new AtomicInteger();
      Mono<Integer> source = Mono.fromSupplier(subscribed::incrementAndGet);
      source.transform(Deadlines.within(BUDGET, "op", clock)).subscribe(new Cancelling<>());
      source.flux().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(new Cancelling<>());
      assertThat(subscribed).hasValue(0);
      assertThat(clock.scheduled()).isZero();
    }

    @Test
    @DisplayName("DL-4 a scheduler that is early is asked again; the error is never early")
    void earlyScheduler() {
      Recorder<Integer> recorder = new Recorder<>();
      Mono.<Integer>never().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(recorder);
      clock.pass(Duration.ofMillis(799));
      clock.fireEarly();
      assertThat(recorder.ends).isEmpty();
      clock.pass(Duration.ofMillis(1));
      clock.fire();
      assertThat(recorder.ends).hasSize(1);
      assertThat(clock.pending()).isZero();
    }

    @Test
    @DisplayName("DL-4 a scheduler that takes no timer fails the subscription, and starts no work")
    void refusingScheduler() {
      clock.refuse();
      AtomicInteger subscribed = new AtomicInteger();
      Mono<Integer> source = Mono.fromSupplier(subscribed::incrementAndGet);
      StepVerifier.create(source.transform(Deadlines.within(BUDGET, "op", clock)))
          .verifyError(RejectedExecutionException.class);
      StepVerifier.create(source.flux().transform(Deadlines.within(BUDGET, "op", clock)))
          .verifyError(RejectedExecutionException.class);
      StepVerifier.create(source.transform(Deadlines.within(BUDGET, "op", Schedulers.immediate())))
          .verifyError(RejectedExecutionException.class);
      assertThat(subscribed).hasValue(0);
    }

    @Test
    @DisplayName("DL-5 the error shows in order where the time went")
    void ledgerInTheError() {
      StepVerifier.withVirtualTime(
              () ->
                  Deadlines.defer(
                          deadline ->
                              Mono.delay(Duration.ofMillis(12))
                                  .doOnNext(t -> deadline.charge("pg.proof", 12_000_000))
                                  .then(Mono.delay(Duration.ofMillis(500)))
                                  .doOnNext(t -> deadline.charge("read 1", 500_000_000))
                                  .then(Mono.never()))
                      .transform(Deadlines.within(BUDGET, "page")))
          .thenAwait(BUDGET)
          .verifyErrorMessage(
              "page: deadline of 800 ms exceeded after 800 ms: pg.proof 12 ms, read 1 500 ms");
    }

    @Test
    @DisplayName("DL-9 completed and cancelled bounds leave nothing in the scheduler's queue")
    void nothingLeftInTheQueue() {
      List<ScheduledThreadPoolExecutor> executors = new ArrayList<>();
      Schedulers.addExecutorServiceDecorator(
          "within-test",
          (scheduler, executor) -> {
            executors.add((ScheduledThreadPoolExecutor) executor);
            return executor;
          });
      Scheduler scheduler = Schedulers.newParallel("within-test", 2);
      try {
        for (int i = 0; i < 2_000; i++) {
          Mono.just(i).hide().transform(Deadlines.within(BUDGET, "op", scheduler)).block();
          Mono.never()
              .transform(Deadlines.within(Duration.ofHours(1), "op", scheduler))
              .subscribe()
              .dispose();
          Flux.never()
              .transform(Deadlines.within(Duration.ofHours(1), "op", scheduler))
              .subscribe()
              .dispose();
        }
        assertThat(executors).hasSize(2);
        assertThat(executors).allMatch(executor -> executor.getQueue().isEmpty());
      } finally {
        scheduler.dispose();
        Schedulers.removeExecutorServiceDecorator("within-test");
      }
    }
  }

  /** Cancels in onSubscribe. */
  private static final class Cancelling<T> extends BaseSubscriber<T> {
    @Override
    protected void hookOnSubscribe(Subscription subscription) {
      cancel();
    }
  }

  @Nested
  class Told {
    private DeadlineExceededException error(Publisher<?> bounded) {
      List<Throwable> errors = new ArrayList<>();
      Flux.from(bounded).subscribe(item -> {}, errors::add);
      clock.pass(BUDGET.minusNanos(1));
      clock.fire();
      clock.pass(Duration.ofNanos(1));
      clock.fire();
      assertThat(errors).singleElement().isInstanceOf(DeadlineExceededException.class);
      return (DeadlineExceededException) errors.get(0);
    }

    private <T> UnaryOperator<Publisher<T>> within(String operation) {
      return Deadlines.within(BUDGET, operation, clock);
    }

    private <T> UnaryOperator<Publisher<T>> unnamed() {
      return Deadlines.of(Deadline.after(BUDGET, clock));
    }

    @Test
    @DisplayName("DL-5 what upstream charges when it is cancelled is in the error, Mono and Flux")
    void chargedOnCancel() {
      Flux<Object> charging =
          Flux.deferContextual(
              context ->
                  Flux.never().doOnCancel(() -> Deadlines.current(context).charge("read", BUDGET)));
      assertThat(error(charging.transform(within("f"))).getMessage())
          .isEqualTo("f: deadline of 800 ms exceeded after 800 ms: read 800 ms");
      assertThat(error(charging.next().transform(within("m"))).getMessage())
          .isEqualTo("m: deadline of 800 ms exceeded after 800 ms: read 800 ms");
    }

    @Test
    @DisplayName("DL-4 an item that is being handed on is followed by the error, told once")
    void followsAnItem() {
      List<Object> signals = new ArrayList<>();
      Sinks.Many<String> source = Sinks.many().unicast().onBackpressureBuffer();
      source
          .asFlux()
          .transform(within("f"))
          .subscribe(
              item -> {
                clock.pass(BUDGET);
                clock.fire();
                signals.add(item);
              },
              signals::add);
      source.tryEmitNext("a");
      source.tryEmitNext("b");
      assertThat(signals).hasSize(2).startsWith("a");
      assertThat(signals.get(1)).isInstanceOf(DeadlineExceededException.class);
    }

    @Test
    @DisplayName("DL-5 without a name given: the pipeline's own name, else that it is a pipeline")
    void names() {
      assertThat(error(Flux.never().name("mine").take(3).transform(unnamed())).operation())
          .isEqualTo("mine");
      assertThat(error(Mono.zip(Mono.never(), Mono.never()).transform(unnamed())).operation())
          .isEqualTo("pipeline");
      assertThat(error(Flux.never().take(3).transform(unnamed())).operation())
          .isEqualTo("pipeline");
      Publisher<Object> plain = s -> s.onSubscribe(Operators.emptySubscription());
      assertThat(error(Deadlines.<Object>within(BUDGET, "given", clock).apply(plain)).operation())
          .isEqualTo("given");
      assertThat(error(Flux.from(plain).transform(unnamed())).operation()).isEqualTo("pipeline");
    }

    @Test
    @DisplayName("DL-5 a name given to a bound holds, whoever notices first that its time is over")
    void outerNameHolds() {
      Flux<Object> adapter =
          Flux.deferContextual(
              context -> {
                Deadline deadline = Deadlines.current(context);
                return Mono.delay(BUDGET, clock)
                    .flatMapMany(
                        tick -> Flux.error(new DeadlineExceededException("adapter", deadline)));
              });
      DeadlineExceededException noticed = error(adapter.transform(within("open orders")));
      assertThat(noticed.operation()).isEqualTo("open orders");
      DeadlineExceededException nested =
          error(
              Mono.never()
                  .transform(Deadlines.within(Duration.ofHours(1), "inner"))
                  .transform(within("open orders")));
      assertThat(nested.operation()).isEqualTo("open orders");
      assertThat(nested)
          .cause()
          .isInstanceOfSatisfying(
              DeadlineExceededException.class,
              inner -> assertThat(inner.operation()).isEqualTo("inner"));
    }

    @Test
    @DisplayName("DL-5 an inner bound with less time of its own keeps its name")
    void innerOwnTime() {
      DeadlineExceededException inner =
          error(
              Flux.never()
                  .transform(Deadlines.within(BUDGET.minusNanos(1), "inner"))
                  .transform(within("outer")));
      assertThat(inner.operation()).isEqualTo("inner");
    }
  }
}
