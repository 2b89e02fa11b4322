package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;
import reactor.test.scheduler.VirtualTimeScheduler;
import reactor.util.context.Context;

class DeadlineTest {
  private static final Duration CENTURY = Duration.ofDays(36_500);
  private static final Duration FOREVER = Duration.ofSeconds(Long.MAX_VALUE, 999_999_999);
  private static final Duration NEVER = Duration.ofSeconds(Long.MIN_VALUE);

  private final VirtualTimeScheduler clock = VirtualTimeScheduler.create();

  private Deadline after(long millis) {
    return Deadline.after(Duration.ofMillis(millis), clock);
  }

  private void pass(long millis) {
    clock.advanceTimeBy(Duration.ofMillis(millis));
  }

  @Nested
  class Clock {
    @Test
    @DisplayName("DL-1 what is left shrinks with its scheduler's clock and turns negative")
    void followsItsScheduler() {
      Deadline deadline = after(800);
      assertThat(deadline.remaining()).isEqualTo(Duration.ofMillis(800));
      pass(799);
      assertThat(deadline.isExpired()).isFalse();
      pass(1);
      assertThat(deadline.remainingNanos()).isZero();
      assertThat(deadline.isExpired()).isTrue();
      pass(5);
      assertThat(deadline.remaining()).isEqualTo(Duration.ofMillis(-5));
    }

    @Test
    @DisplayName("DL-1 the default clock is the virtual one where that was swapped in later")
    void followsVirtualTimeSwappedInAfterClassLoad() {
      assertThat(Deadline.after(Duration.ofHours(1)).isExpired()).isFalse(); // on the real clock
      StepVerifier.withVirtualTime(
              () -> {
                Deadline deadline = Deadline.after(Duration.ofHours(1));
                return Mono.delay(Duration.ofMinutes(50))
                    .map(tick -> deadline.remaining())
                    .concatWith(
                        Mono.delay(Duration.ofMinutes(10)).map(tick -> deadline.remaining()));
              })
          .thenAwait(Duration.ofHours(1))
          .expectNext(Duration.ofMinutes(10), Duration.ZERO)
          .verifyComplete();
    }

    @Test
    @DisplayName("DL-1 the clock is the monotonic one, not the wall clock's milliseconds")
    void readsNanoseconds() {
      long nanos = Schedulers.parallel().now(TimeUnit.NANOSECONDS);
      long atMost = Deadline.after(Duration.ZERO, Schedulers.parallel()).remainingNanos() + nanos;
      assertThat(Math.abs(System.nanoTime() - atMost)).isLessThan(TimeUnit.MINUTES.toNanos(1));
    }

    @Test
    @DisplayName("DL-1 none never passes and is on the default scheduler")
    void none() {
      Deadline none = Deadline.none();
      assertThat(none.isNone()).isTrue();
      assertThat(none.isExpired()).isFalse();
      assertThat(none.remainingNanos()).isEqualTo(Long.MAX_VALUE);
      assertThat(none.remaining()).isEqualTo(Duration.ofNanos(Long.MAX_VALUE));
      assertThat(none.scheduler()).isSameAs(Schedulers.parallel());
      assertThat(none).hasToString("Deadline[none]");
      assertThat(after(1).isNone()).isFalse();
      assertThat(after(1).scheduler()).isSameAs(clock);
    }

    @Test
    @DisplayName("DL-1 text says what is left, or how long ago it passed")
    void text() {
      Deadline deadline = after(800);
      pass(300);
      assertThat(deadline).hasToString("Deadline[500 ms left of 800 ms]");
      pass(1_700);
      assertThat(deadline).hasToString("Deadline[passed 1.200 s ago of 800 ms]");
    }
  }

  @Nested
  class EdgeDurations {
    @ParameterizedTest
    @ValueSource(longs = {0, -1, -1_000_000})
    @DisplayName("DL-2 a zero or negative duration has passed already")
    void zeroAndNegative(long nanos) {
      Duration duration = Duration.ofNanos(nanos);
      assertThat(Deadline.after(duration, clock).isExpired()).isTrue();
      assertThat(Deadline.after(duration, clock).remainingNanos()).isEqualTo(nanos);
      assertThat(after(10).within(duration).isExpired()).isTrue();
      assertThat(Deadline.none().within(duration).isExpired()).isTrue();
    }

    @Test
    @DisplayName("DL-2 a duration that would overflow counts as 100 years")
    void overflow() {
      Deadline far = Deadline.after(FOREVER, clock);
      assertThat(far.remaining()).isEqualTo(CENTURY);
      assertThat(far.isExpired()).isFalse();
      Deadline past = Deadline.after(NEVER, clock);
      assertThat(past.remaining()).isEqualTo(CENTURY.negated());
      assertThat(past.isExpired()).isTrue();
      assertThat(far.earlier(past)).isSameAs(past);
      assertThat(past.earlier(far)).isSameAs(past);
      assertThat(far.within(FOREVER)).isSameAs(far);
      assertThat(far.within(NEVER).remaining()).isEqualTo(CENTURY.negated());
      assertThat(past.before(FOREVER).before(FOREVER).isExpired()).isTrue();
      assertThat(far.before(FOREVER).isExpired()).isTrue();
    }
  }

  @Nested
  class Children {
    @Test
    @DisplayName("DL-2 within shortens and never lengthens")
    void within() {
      Deadline parent = after(800);
      assertThat(parent.within(Duration.ofMillis(300)).remaining())
          .isEqualTo(Duration.ofMillis(300));
      assertThat(parent.within(Duration.ofMillis(800))).isSameAs(parent);
      assertThat(parent.within(Duration.ofMillis(801))).isSameAs(parent);
      assertThat(Deadline.none().within(Duration.ofHours(1)).isNone()).isFalse();
    }

    @Test
    @DisplayName("DL-2 a share is half of what is left, and all of it for the last")
    void share() {
      Deadline parent = after(800);
      assertThat(parent.share(3).remaining()).isEqualTo(Duration.ofMillis(400));
      pass(400);
      assertThat(parent.share(2).remaining()).isEqualTo(Duration.ofMillis(200));
      pass(200);
      assertThat(parent.share(1)).isSameAs(parent);
      pass(200);
      assertThat(parent.share(5)).isSameAs(parent);
      assertThat(Deadline.none().share(5)).isSameAs(Deadline.none());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, -1, Integer.MIN_VALUE})
    @DisplayName("DL-2 a share for nobody is refused")
    void shareForNobody(int consumersLeft) {
      assertThatThrownBy(() -> after(1).share(consumersLeft))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("consumersLeft: " + consumersLeft + " (expected: >= 1)");
    }

    @Test
    @DisplayName("DL-2 before leaves a margin; a negative one never lengthens")
    void before() {
      Deadline parent = after(800);
      assertThat(parent.before(Duration.ofMillis(50)).remaining())
          .isEqualTo(Duration.ofMillis(750));
      assertThat(parent.before(Duration.ZERO)).isSameAs(parent);
      assertThat(parent.before(Duration.ofMillis(-50))).isSameAs(parent);
      assertThat(parent.before(Duration.ofSeconds(2)).isExpired()).isTrue();
      assertThat(Deadline.none().before(Duration.ofSeconds(2))).isSameAs(Deadline.none());
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    @DisplayName("DL-2 no chain of children outlives its parent")
    void neverOutlives(long seed) {
      Random random = new Random(seed);
      for (int round = 0; round < 200; round++) {
        Deadline parent = after(random.nextInt(2_000) - 200);
        Deadline child = parent;
        for (int step = 0; step < 6; step++) {
          Duration any =
              random.nextInt(10) == 0 ? FOREVER : Duration.ofMillis(random.nextInt(3_000) - 500);
          child =
              switch (random.nextInt(4)) {
                case 0 -> child.within(any);
                case 1 -> child.share(1 + random.nextInt(4));
                case 2 -> child.before(any);
                default -> child.earlier(Deadline.after(any, clock));
              };
          assertThat(child.remainingNanos()).isLessThanOrEqualTo(parent.remainingNanos());
          pass(random.nextInt(50));
        }
      }
    }
  }

  @Nested
  class Comparison {
    @Test
    @DisplayName("DL-1 the earlier of two; the first where both pass at once")
    void earlier() {
      Deadline soon = after(100);
      Deadline late = after(200);
      assertThat(soon.earlier(late)).isSameAs(soon);
      assertThat(late.earlier(soon)).isSameAs(soon);
      Deadline same = after(100);
      assertThat(soon.earlier(same)).isSameAs(soon);
      assertThat(same.earlier(soon)).isSameAs(same);
      assertThat(soon.earlier(Deadline.none())).isSameAs(soon);
      assertThat(Deadline.none().earlier(soon)).isSameAs(soon);
      assertThat(Deadline.none().earlier(Deadline.none())).isSameAs(Deadline.none());
    }

    @Test
    @DisplayName("DL-1 deadlines on different clocks compare by what is left")
    void differentClocks() {
      VirtualTimeScheduler ahead = VirtualTimeScheduler.create();
      ahead.advanceTimeBy(Duration.ofHours(5));
      Deadline here = after(200);
      Deadline there = Deadline.after(Duration.ofMillis(100), ahead);
      assertThat(here.earlier(there)).isSameAs(there);
      pass(150);
      assertThat(here.earlier(there)).isSameAs(here);
      assertThat(there.earlier(here)).isSameAs(here);
    }
  }

  @Nested
  class Account {
    @Test
    @DisplayName("DL-5 charges are listed in order and shared by parent and children")
    void sharedInOrder() {
      Deadline parent = after(800);
      Deadline child = parent.within(Duration.ofMillis(500));
      child.charge("pg.proof", Duration.ofMillis(12));
      parent.share(2).charge("bigtable.read-rows attempt 1", 502_000_000L);
      parent.before(Duration.ofMillis(1)).charge("late", -5);
      assertThat(parent.ledger())
          .containsExactly(
              new LedgerEntry("pg.proof", 12_000_000),
              new LedgerEntry("bigtable.read-rows attempt 1", 502_000_000),
              new LedgerEntry("late", 0));
      assertThat(child.ledger()).isEqualTo(parent.ledger());
      assertThat(parent.ledger().get(0).spent()).isEqualTo(Duration.ofMillis(12));
      assertThat(parent.ledger().get(0)).hasToString("pg.proof 12 ms");
    }

    @Test
    @DisplayName("DL-5 the ledger is bounded: the oldest are summed in one entry")
    void bounded() {
      Deadline deadline = after(800);
      for (int i = 1; i <= 100; i++) {
        deadline.charge("step " + i, Duration.ofMillis(i));
      }
      List<LedgerEntry> ledger = deadline.ledger();
      assertThat(ledger).hasSize(Ledger.CAPACITY);
      assertThat(ledger.get(0)).isEqualTo(new LedgerEntry("(85 earlier)", 3_655_000_000L));
      assertThat(ledger.get(1).step()).isEqualTo("step 86");
      assertThat(ledger.get(15).step()).isEqualTo("step 100");
      assertThat(ledger.stream().mapToLong(LedgerEntry::nanos).sum()).isEqualTo(5_050_000_000L);
      for (int i = 0; i < 40; i++) {
        deadline.charge("endless", Long.MAX_VALUE);
      }
      assertThat(deadline.ledger().get(0).nanos()).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    @DisplayName("DL-5 nothing is kept where there is no deadline")
    void noneKeepsNothing() {
      Deadline.none().charge("step", 1);
      assertThat(Deadline.none().ledger()).isEmpty();
      assertThat(after(1).ledger()).isEmpty();
    }

    @Test
    @DisplayName("DL-5 charges from many threads are all counted")
    void concurrentCharges() throws InterruptedException {
      Deadline deadline = after(800);
      CountDownLatch done = new CountDownLatch(4);
      for (int t = 0; t < 4; t++) {
        new Thread(
                () -> {
                  for (int i = 0; i < 1_000; i++) {
                    deadline.within(Duration.ofMillis(1)).charge("step", 1);
                  }
                  done.countDown();
                })
            .start();
      }
      assertThat(done.await(1, TimeUnit.MINUTES)).isTrue();
      assertThat(deadline.ledger().stream().mapToLong(LedgerEntry::nanos).sum()).isEqualTo(4_000);
    }

    @Test
    @DisplayName("DL-5 a deadline put under another charges both ledgers")
    void chargesTheOuterToo() {
      Deadline outer = after(800);
      Deadline inner = after(300);
      Context context = Deadlines.put(Deadlines.put(Context.empty(), outer), inner);
      Deadline current = Deadlines.current(context);
      assertThat(current.remaining()).isEqualTo(Duration.ofMillis(300));
      current.within(Duration.ofMillis(1)).charge("step", 7);
      assertThat(inner.ledger()).containsExactly(new LedgerEntry("step", 7));
      assertThat(outer.ledger()).containsExactly(new LedgerEntry("step", 7));
    }
  }

  @Nested
  class InTheContext {
    @Test
    @DisplayName("DL-3 put keeps the lesser, and the one there where both pass at once")
    void putKeepsTheLesser() {
      Context context = Deadlines.put(Context.empty(), after(300));
      assertThat(Deadlines.current(Context.empty())).isSameAs(Deadline.none());
      assertThat(Deadlines.put(context, after(800))).isSameAs(context);
      assertThat(Deadlines.put(context, after(300))).isSameAs(context);
      assertThat(Deadlines.put(context, Deadline.none())).isSameAs(context);
      assertThat(Deadlines.current(Deadlines.put(context, after(100))).remaining())
          .isEqualTo(Duration.ofMillis(100));
    }
  }

  @Nested
  class Message {
    @Test
    @DisplayName("DL-4 DL-5 the exception names operation, budget and where the time went")
    void whereTheTimeWent() {
      Deadline deadline = after(800);
      deadline.charge("pg.proof", Duration.ofNanos(12_300_000));
      deadline.charge("bigtable.read-rows attempt 1", Duration.ofMillis(788));
      deadline.charge("parse", 830_000);
      pass(1_204);
      DeadlineExceededException e = new DeadlineExceededException("profile page", deadline);
      assertThat(e)
          .hasMessage(
              "profile page: deadline of 800 ms exceeded after 1.204 s: "
                  + "pg.proof 12.3 ms, bigtable.read-rows attempt 1 788 ms, parse 830 us");
      assertThat(e.operation()).isEqualTo("profile page");
      assertThat(e.budget()).isEqualTo(Duration.ofMillis(800));
      assertThat(e.elapsed()).isEqualTo(Duration.ofMillis(1_204));
      assertThat(e.ledger()).isEqualTo(deadline.ledger());
    }

    @Test
    @DisplayName("DL-10 the refusal names what is left and what is needed")
    void tooLittle() {
      Deadline deadline = after(800);
      pass(797);
      TooLittleTimeException e =
          new TooLittleTimeException("scan", deadline, Duration.ofMillis(20));
      assertThat(e).hasMessage("scan: 3 ms left of 800 ms, at least 20 ms needed");
      assertThat(e.left()).isEqualTo(Duration.ofMillis(3));
      assertThat(e.needed()).isEqualTo(Duration.ofMillis(20));
      assertThat(e.elapsed()).isEqualTo(Duration.ofMillis(797));
    }
  }
}
