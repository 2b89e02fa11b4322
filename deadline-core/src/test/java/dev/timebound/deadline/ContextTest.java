package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;
import reactor.test.scheduler.VirtualTimeScheduler;

@Timeout(60)
class ContextTest {
  private static final Duration BUDGET = Duration.ofMillis(800);

  private final ManualScheduler clock = new ManualScheduler();

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
                      .retry(10_000) // as good as endless, but a red test ends
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
          Deadlines.defer("read", d -> Mono.just(d.isNone() && calls.incrementAndGet() > 0));
      Flux<Boolean> flux =
          Deadlines.deferMany("scan", d -> Flux.just(d.isNone() && calls.incrementAndGet() > 0));
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
}
