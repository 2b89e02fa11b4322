package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.test.StepVerifier;
import reactor.test.publisher.TestPublisher;
import reactor.test.scheduler.VirtualTimeScheduler;
import reactor.util.context.Context;

@Timeout(60)
class SharedConcatTest {
  private static final Duration BUDGET = Duration.ofMillis(800);

  private VirtualTimeScheduler time;

  @BeforeEach
  void virtualTime() {
    time = VirtualTimeScheduler.getOrSet();
  }

  @AfterEach
  void realTime() {
    VirtualTimeScheduler.reset();
  }

  private <T> Recorder<T> run(Flux<T> flux, Duration forTime) {
    Recorder<T> recorder = new Recorder<>();
    flux.transform(Deadlines.within(BUDGET)).subscribe(recorder);
    time.advanceTimeBy(forTime);
    assertThat(recorder.faults).isEmpty();
    return recorder;
  }

  /** An item each 60 ms, without end. */
  private static Flux<String> drops(String item) {
    return Flux.interval(Duration.ofMillis(60)).map(i -> item + i);
  }

  @Nested
  class Shares {
    @Test
    @DisplayName("DL-12 each item has half of what is left when its turn comes, the last all of it")
    void halves() {
      List<Long> shares = new ArrayList<>();
      Flux<Integer> flux =
          Deadlines.concatMapShared(
              List.of(1, 2, 3, 4),
              item ->
                  Deadlines.defer(
                      share -> {
                        shares.add(share.remaining().toMillis());
                        return Mono.delay(Duration.ofMillis(100)).thenReturn(item);
                      }));
      Recorder<Integer> recorder = run(flux, Duration.ofSeconds(1));
      assertThat(recorder.items).containsExactly(1, 2, 3, 4);
      assertThat(shares).containsExactly(400L, 350L, 300L, 500L);
      assertThat(recorder.ends).containsExactly("complete");
    }

    @Test
    @DisplayName("DL-12 without a deadline nothing is cut")
    void none() {
      Recorder<String> recorder = new Recorder<>();
      Deadlines.concatMapShared(
              List.of("a", "b"), item -> Mono.delay(Duration.ofHours(1)).thenReturn(item))
          .subscribe(recorder);
      time.advanceTimeBy(Duration.ofHours(2));
      assertThat(recorder.items).containsExactly("a", "b");
      assertThat(recorder.ends).containsExactly("complete");
    }

    @Test
    @DisplayName("DL-12 no items: an empty sequence; the items are read at each subscription")
    void items() {
      List<String> items = new ArrayList<>();
      Flux<String> flux = Deadlines.concatMapShared(items, Mono::just);
      assertThat(flux.collectList().block()).isEmpty();
      items.add("a");
      assertThat(flux.collectList().block()).containsExactly("a");
    }
  }

  @Nested
  class Cut {
    @Test
    @DisplayName(
        "DL-12 what came in before an item's share ran out is kept, and the next has its turn")
    void kept() {
      Flux<String> flux =
          Deadlines.concatMapShared(
              List.of("a", "b", "c"), item -> item.equals("b") ? Mono.just("b") : drops(item));
      Recorder<String> recorder = run(flux, Duration.ofSeconds(1));
      // a: 400 ms of 800, b at once, c: all 400 ms that are left, to the very deadline
      assertThat(recorder.items)
          .containsExactly(
              "a0", "a1", "a2", "a3", "a4", "a5", "b", "c0", "c1", "c2", "c3", "c4", "c5");
      assertThat(recorder.ends).containsExactly("complete");
    }

    @Test
    @DisplayName("DL-12 the caller learns of what was cut, where it was")
    void told() {
      List<DeadlineExceededException> late = new ArrayList<>();
      Flux<String> flux =
          Deadlines.concatMapShared(
              List.of("a", "b"),
              item ->
                  item.equals("a") ? drops("a").take(2).concatWith(Flux.never()) : Mono.just("b"),
              (item, error) -> {
                late.add(error);
                return Mono.just(item + " cut");
              });
      Recorder<String> recorder = run(flux, Duration.ofSeconds(1));
      assertThat(recorder.items).containsExactly("a0", "a1", "a cut", "b");
      assertThat(late)
          .singleElement()
          .asString()
          .endsWith("item 1 of 2: deadline of 400 ms exceeded after 400 ms");
    }

    @Test
    @DisplayName("DL-12 the caller may fail after all")
    void failing() {
      Flux<String> flux =
          Deadlines.concatMapShared(
              List.of("a", "b"), item -> drops(item), (item, late) -> Mono.error(late));
      Recorder<String> recorder = run(flux, Duration.ofMillis(400));
      assertThat(recorder.items).hasSize(6);
      assertThat(recorder.ends).singleElement().isInstanceOf(DeadlineExceededException.class);
    }

    @Test
    @DisplayName("DL-12 the work of an item that is cut is cancelled")
    void cancelled() {
      TestPublisher<String> first = TestPublisher.create();
      Flux<String> flux =
          Deadlines.concatMapShared(List.of(first.flux(), Mono.just("b")), item -> item);
      run(flux, Duration.ofMillis(400));
      first.assertCancelled();
    }

    @Test
    @DisplayName("DL-12 whoever notices first that a share has run out, the item is cut")
    void noticedUpstream() {
      Flux<String> flux =
          Deadlines.concatMapShared(
              List.of("a", "b"),
              item ->
                  item.equals("b")
                      ? Mono.just("b")
                      : Deadlines.<String>defer(
                          share ->
                              Mono.delay(Duration.ofMillis(1))
                                  .then(Mono.error(new DeadlineExceededException("wire", share)))),
              (item, late) -> Mono.just(late.operation()));
      assertThat(run(flux, Duration.ofMillis(1)).items).containsExactly("item 1 of 2", "b");
    }

    @Test
    @DisplayName("DL-12 a share that is too little for the item is a cut")
    void tooLittle() {
      Flux<String> flux =
          Deadlines.concatMapShared(
              List.of("a", "b"),
              item -> Mono.just(item).transform(Deadlines.requireAtLeast(Duration.ofMillis(500))),
              (item, late) -> Mono.just(item + " " + late.getClass().getSimpleName()));
      assertThat(run(flux, Duration.ZERO).items).containsExactly("a TooLittleTimeException", "b");
    }

    @Test
    @DisplayName("DL-12 another error ends the whole; so does the deadline of a bound of its own")
    void otherErrors() {
      AtomicInteger begun = new AtomicInteger();
      Flux<Integer> flux =
          Deadlines.concatMapShared(
              List.of(1, 2),
              item -> {
                begun.incrementAndGet();
                return Mono.<Integer>error(new IOException());
              });
      assertThat(run(flux, Duration.ZERO).ends).singleElement().isInstanceOf(IOException.class);
      assertThat(begun).hasValue(1);
      Flux<Integer> own =
          Deadlines.concatMapShared(
              List.of(1, 2),
              item ->
                  Mono.<Integer>never().transform(Deadlines.within(Duration.ofMillis(50), "own")));
      assertThat(run(own, Duration.ofMillis(50)).ends)
          .singleElement()
          .asString()
          .contains("own: deadline of 50 ms");
    }

    @Test
    @DisplayName(
        "DL-12 items whose turn comes after the deadline are not begun, and cost nothing kept")
    void afterTheDeadline() {
      AtomicInteger begun = new AtomicInteger();
      List<String> cut = new ArrayList<>();
      Flux<String> flux =
          Deadlines.concatMapShared(
              List.of("a", "b", "c"),
              item -> {
                begun.incrementAndGet();
                return Mono.fromSupplier(
                    () -> {
                      blocks(Duration.ofSeconds(1));
                      return item;
                    });
              },
              (item, late) -> {
                cut.add(item);
                return Mono.empty();
              });
      // collected under the bound: an error would lose what came in
      ManualScheduler manual = clock;
      Recorder<List<String>> recorder =
          new Recorder<>(1, Deadlines.put(Context.empty(), Deadline.after(BUDGET, manual)));
      flux.collectList().transform(Deadlines.within(BUDGET)).subscribe(recorder);
      assertThat(recorder.items).containsExactly(List.of("a"));
      assertThat(begun).hasValue(1);
      assertThat(cut).containsExactly("b", "c");
      assertThat(recorder.ends).containsExactly("complete");
      assertThat(manual.pending()).isZero();
    }

    private final ManualScheduler clock = new ManualScheduler();

    /** The item's work holds the thread for longer than there is, so that no timer can fire. */
    private void blocks(Duration duration) {
      clock.pass(duration);
    }

    @Test
    @DisplayName("DL-5 the ledger shows what was cut")
    void ledger() {
      List<Deadline> deadlines = new ArrayList<>();
      Flux<String> flux =
          Deadlines.deferMany(
              deadline -> {
                deadlines.add(deadline);
                return Deadlines.concatMapShared(List.of("a", "b"), item -> Mono.never());
              });
      run(flux, Duration.ofSeconds(1));
      assertThat(deadlines.get(0).ledger())
          .hasToString("[item 1 of 2 cut 400 ms, item 2 of 2 cut 400 ms]");
    }
  }

  @Nested
  class Operator {
    @Test
    @DisplayName("DL-12 demand is passed on: an item gives what is asked for")
    void demand() {
      List<Long> asked = new ArrayList<>();
      StepVerifier.create(
              Deadlines.concatMapShared(
                      List.of(10, 20), from -> Flux.range(from, 3).hide().doOnRequest(asked::add))
                  .transform(Deadlines.within(BUDGET)),
              0)
          .thenRequest(2)
          .expectNext(10, 11)
          .thenRequest(2)
          .expectNext(12, 20)
          .thenRequest(9)
          .expectNext(21, 22)
          .verifyComplete();
      assertThat(asked).startsWith(2L, 2L).allMatch(n -> n <= 9);
    }

    @Test
    @DisplayName(
        "DL-12 the Context is passed on, and the next item begins when the one before ended")
    void context() {
      List<String> begun = new ArrayList<>();
      Sinks.One<String> first = Sinks.one();
      Flux<String> flux =
          Deadlines.concatMapShared(
              List.of("a", "b"),
              item ->
                  Mono.deferContextual(
                      context -> {
                        begun.add(item + context.get("who"));
                        return item.equals("a") ? first.asMono() : Mono.just(item);
                      }));
      Recorder<String> recorder =
          new Recorder<>(
              Long.MAX_VALUE,
              Deadlines.put(Context.of("who", "1"), Deadline.after(Duration.ofSeconds(1))));
      flux.subscribe(recorder);
      assertThat(begun).containsExactly("a1");
      first.tryEmitValue("a");
      assertThat(begun).containsExactly("a1", "b1");
      assertThat(recorder.items).containsExactly("a", "b");
    }

    @Test
    @DisplayName("DL-12 a cancel reaches the item that is served, and no other begins")
    void cancel() {
      TestPublisher<Integer> first = TestPublisher.create();
      AtomicInteger begun = new AtomicInteger();
      Recorder<Integer> recorder = new Recorder<>();
      Deadlines.concatMapShared(
              IntStream.range(0, 5).boxed().toList(),
              item -> {
                begun.incrementAndGet();
                return first.flux();
              })
          .transform(Deadlines.within(BUDGET))
          .subscribe(recorder);
      recorder.subscription().cancel();
      first.assertCancelled();
      time.advanceTimeBy(Duration.ofSeconds(2));
      assertThat(begun).hasValue(1);
      assertThat(recorder.ends).isEmpty();
      assertThat(time.now(TimeUnit.SECONDS)).isEqualTo(2);
    }
  }
}
