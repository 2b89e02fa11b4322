package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;
import reactor.test.publisher.TestPublisher;
import reactor.test.scheduler.VirtualTimeScheduler;

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
      Recorder<Integer> flux = new Recorder<>(1, reactor.util.context.Context.empty());
      source.flux().transform(Deadlines.within(BUDGET, "op", clock)).subscribe(flux);
      flux.subscription().request(n);
      Recorder<Integer> mono = new Recorder<>(1, reactor.util.context.Context.empty());
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
              reactor.core.publisher.Operators.enableOnDiscard(
                  reactor.util.context.Context.of(
                      "reactor.onNextDropped.local",
                      (java.util.function.Consumer<Object>) dropped::add),
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

  @Nested
  class InTheContext {
    @Test
    @DisplayName("DL-3 one bound at the edge is seen through flatMap, zip, retry and publishOn")
    void seenEverywhereUpstream() {
      List<Duration> left = new ArrayList<>();
      AtomicInteger attempts = new AtomicInteger();
      Mono<Integer> look =
          Deadlines.defer(
              deadline -> {
                synchronized (left) {
                  left.add(deadline.remaining());
                }
                return Mono.just(1);
              });
      StepVerifier.withVirtualTime(
              () ->
                  Mono.zip(look, look.publishOn(Schedulers.single()))
                      .flatMap(pair -> Mono.delay(Duration.ofMillis(100)).then(look))
                      .flatMapMany(one -> Flux.just(1, 2).flatMap(i -> look))
                      .publishOn(Schedulers.parallel())
                      .concatMap(
                          i ->
                              look.flatMap(
                                  j ->
                                      attempts.incrementAndGet() == 1
                                          ? Mono.error(new IllegalStateException())
                                          : Mono.just(j)))
                      .retry(1)
                      .transform(Deadlines.within(BUDGET)))
          .thenAwait(BUDGET)
          .expectNextCount(2)
          .verifyComplete();
      assertThat(left).hasSizeGreaterThan(8);
      assertThat(left.subList(0, 2)).containsOnly(BUDGET);
      assertThat(left.get(2)).isEqualTo(Duration.ofMillis(700));
      assertThat(left).allMatch(d -> d.compareTo(BUDGET) <= 0 && d.toMillis() >= 600);
    }

    @Test
    @DisplayName("DL-3 a retry downstream of the bound gets a fresh budget each time")
    void retryDownstream() {
      List<Duration> left = new ArrayList<>();
      StepVerifier.withVirtualTime(
              () ->
                  Deadlines.defer(
                          deadline -> {
                            left.add(deadline.remaining());
                            return Mono.never();
                          })
                      .transform(Deadlines.within(BUDGET))
                      .retry(2))
          .thenAwait(BUDGET.multipliedBy(2))
          .expectNoEvent(BUDGET.minusMillis(1))
          .thenAwait(Duration.ofMillis(1))
          .verifyError(DeadlineExceededException.class);
      assertThat(left).containsExactly(BUDGET, BUDGET, BUDGET);
    }

    @Test
    @DisplayName("DL-3 a retry upstream of the bound shares it, and none starts after it")
    void retryUpstream() {
      List<Duration> left = new ArrayList<>();
      StepVerifier.withVirtualTime(
              () ->
                  Deadlines.defer(
                          deadline -> {
                            left.add(deadline.remaining());
                            return Mono.delay(Duration.ofMillis(300)).then(Mono.error(boom()));
                          })
                      .retry()
                      .transform(Deadlines.within(BUDGET)))
          .thenAwait(Duration.ofSeconds(10))
          .verifyError(DeadlineExceededException.class);
      assertThat(left).containsExactly(BUDGET, Duration.ofMillis(500), Duration.ofMillis(200));
    }

    @Test
    @DisplayName("DL-3 an inner bound shortens and never lengthens")
    void innerShortens() {
      List<Duration> left = new ArrayList<>();
      VirtualTimeScheduler virtual = VirtualTimeScheduler.create();
      Mono<Boolean> look = Deadlines.defer(d -> Mono.just(left.add(d.remaining())));
      look.transform(Deadlines.within(Duration.ofMillis(100)))
          .then(look.transform(Deadlines.within(Duration.ofHours(1))))
          .then(look.transform(Deadlines.of(Deadline.after(Duration.ofMillis(50), virtual))))
          .then(look.transform(Deadlines.of(Deadline.after(Duration.ofHours(1), virtual))))
          .then(look)
          .transform(Deadlines.within(BUDGET, "outer", virtual))
          .block();
      assertThat(left)
          .containsExactly(Duration.ofMillis(100), BUDGET, Duration.ofMillis(50), BUDGET, BUDGET);
    }

    @Test
    @DisplayName("DL-3 defer reads at each subscription, and makes no call after the deadline")
    void defer() {
      AtomicInteger calls = new AtomicInteger();
      Mono<Boolean> mono =
          Deadlines.defer("read", d -> Mono.just(d.isNone() & calls.incrementAndGet() > 0));
      Flux<Boolean> flux =
          Deadlines.deferMany("scan", d -> Flux.just(d.isNone() & calls.incrementAndGet() > 0));
      assertThat(mono.block()).isTrue();
      assertThat(flux.blockLast()).isTrue();
      Deadline expired = Deadline.after(Duration.ZERO, clock);
      StepVerifier.create(mono.contextWrite(c -> Deadlines.put(c, expired)))
          .verifyErrorSatisfies(e -> assertThat(e).hasMessageStartingWith("read: deadline of"));
      StepVerifier.create(flux.contextWrite(c -> Deadlines.put(c, expired)))
          .verifyErrorSatisfies(e -> assertThat(e).hasMessageStartingWith("scan: deadline of"));
      assertThat(calls).hasValue(2);
    }
  }

  @Nested
  class TooLittle {
    private final AtomicInteger subscribed = new AtomicInteger();
    private final Mono<Integer> work = Mono.fromSupplier(subscribed::incrementAndGet);

    @Test
    @DisplayName("DL-10 too little is refused before any work")
    void refused() {
      Deadline left = Deadline.after(Duration.ofMillis(19), clock);
      Duration needed = Duration.ofMillis(20);
      StepVerifier.create(
              work.transform(Deadlines.requireAtLeast(needed, "scan"))
                  .contextWrite(c -> Deadlines.put(c, left)))
          .verifyErrorSatisfies(
              e ->
                  assertThat(e)
                      .isInstanceOf(TooLittleTimeException.class)
                      .hasMessage("scan: 19 ms left of 19 ms, at least 20 ms needed"));
      StepVerifier.create(
              work.flux()
                  .transform(Deadlines.requireAtLeast(needed))
                  .contextWrite(c -> Deadlines.put(c, left)))
          .verifyError(TooLittleTimeException.class);
      assertThat(subscribed).hasValue(0);
    }

    @Test
    @DisplayName("DL-10 enough passes, and so does no deadline")
    void passes() {
      Deadline left = Deadline.after(Duration.ofMillis(20), clock);
      Duration needed = Duration.ofMillis(20);
      assertThat(
              work.transform(Deadlines.requireAtLeast(needed))
                  .contextWrite(c -> Deadlines.put(c, left))
                  .block())
          .isEqualTo(1);
      assertThat(work.transform(Deadlines.requireAtLeast(Duration.ofDays(1))).block()).isEqualTo(2);
      assertThat(work.flux().transform(Deadlines.requireAtLeast(needed)).blockLast()).isEqualTo(3);
    }

    @Test
    @DisplayName("DL-10 a deadline that has passed is refused as passed")
    void passed() {
      Deadline expired = Deadline.after(Duration.ZERO, clock);
      StepVerifier.create(
              work.transform(Deadlines.requireAtLeast(Duration.ZERO))
                  .contextWrite(c -> Deadlines.put(c, expired)))
          .verifyErrorSatisfies(
              e -> assertThat(e).isExactlyInstanceOf(DeadlineExceededException.class));
      assertThat(subscribed).hasValue(0);
      assertThatThrownBy(() -> Deadlines.requireAtLeast(Duration.ofMillis(-1)))
          .hasMessage("requireAtLeast: PT-0.001S (expected: >= 0)");
    }
  }

  private static IllegalStateException boom() {
    return new IllegalStateException("boom");
  }

  /** Cancels in onSubscribe. */
  private static final class Cancelling<T> extends reactor.core.publisher.BaseSubscriber<T> {
    @Override
    protected void hookOnSubscribe(org.reactivestreams.Subscription subscription) {
      cancel();
    }
  }
}
