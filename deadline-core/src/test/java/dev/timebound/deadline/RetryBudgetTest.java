package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.core.scheduler.Scheduler;
import reactor.test.scheduler.VirtualTimeScheduler;

@Timeout(60)
class RetryBudgetTest {
  private final ManualScheduler clock = new ManualScheduler();

  private static int takeAll(RetryBudget budget) {
    int taken = 0;
    while (budget.tryTake()) {
      taken++;
    }
    return taken;
  }

  private static void request(RetryBudget budget, int times) {
    for (int i = 0; i < times; i++) {
      budget.requested();
    }
  }

  @Nested
  class Allowance {
    @Test
    @DisplayName("DL-11 by default 10 a second, whatever the requests are")
    void perSecond() {
      RetryBudget budget = RetryBudget.builder().scheduler(clock).build();
      assertThat(takeAll(budget)).isEqualTo(10);
      clock.pass(Duration.ofMillis(99));
      assertThat(takeAll(budget)).isZero();
      clock.pass(Duration.ofMillis(1));
      assertThat(takeAll(budget)).isEqualTo(1);
      clock.pass(Duration.ofMillis(450));
      assertThat(takeAll(budget)).isEqualTo(4);
    }

    @Test
    @DisplayName("DL-11 what a second was not asked for is lost with the second")
    void notSaved() {
      RetryBudget budget = RetryBudget.builder().scheduler(clock).build();
      clock.pass(Duration.ofHours(1));
      assertThat(takeAll(budget)).isEqualTo(10);
    }

    @Test
    @DisplayName("DL-11 none a second: only what the requests earn")
    void none() {
      RetryBudget budget = RetryBudget.builder().perSecond(0).scheduler(clock).build();
      clock.pass(Duration.ofHours(1));
      assertThat(budget.tryTake()).isFalse();
    }

    @Test
    @DisplayName("DL-11 who read the clock before others took gets nothing on top")
    void clockReadBefore() {
      AtomicReference<Runnable> between = new AtomicReference<>(() -> {});
      Scheduler overtaken =
          new DelegatingClock(clock) {
            @Override
            public long now(TimeUnit unit) {
              long read = super.now(unit);
              between.getAndSet(() -> {}).run();
              return read;
            }
          };
      RetryBudget budget = RetryBudget.builder().share(0).scheduler(overtaken).build();
      AtomicInteger others = new AtomicInteger();
      between.set(
          () -> {
            clock.pass(Duration.ofMillis(1));
            others.set(takeAll(budget));
          });
      int late = takeAll(budget);
      assertThat(others.get() + late).as("in a millisecond").isEqualTo(10);
    }

    @Test
    @DisplayName("DL-11 a clock that was replaced, as by virtual time, locks nobody out")
    void anotherClock() {
      RetryBudget budget = RetryBudget.create();
      takeAll(budget);
      VirtualTimeScheduler.getOrSet();
      try {
        assertThat(takeAll(budget)).isEqualTo(10);
        assertThat(budget.tryTake()).isFalse();
        VirtualTimeScheduler.get().advanceTimeBy(Duration.ofSeconds(1));
        assertThat(takeAll(budget)).isEqualTo(10);
      } finally {
        VirtualTimeScheduler.reset();
      }
    }
  }

  @Nested
  class Share {
    @Test
    @DisplayName("DL-11 by default 20% of the requests")
    void twentyPercent() {
      RetryBudget budget = RetryBudget.builder().perSecond(0).scheduler(clock).build();
      request(budget, 4);
      assertThat(budget.tryTake()).isFalse();
      request(budget, 1);
      assertThat(takeAll(budget)).isEqualTo(1);
      request(budget, 50);
      assertThat(takeAll(budget)).isEqualTo(10);
    }

    @Test
    @DisplayName("DL-11 savings are bounded, and the second's allowance is used before them")
    void bounded() {
      RetryBudget budget = RetryBudget.builder().saved(30).scheduler(clock).build();
      request(budget, 1_000_000);
      for (int i = 0; i < 10; i++) {
        assertThat(budget.tryTake()).isTrue();
      }
      clock.pass(Duration.ofSeconds(1));
      assertThat(takeAll(budget)).isEqualTo(10 + 30);
    }

    @Test
    @DisplayName("DL-11 a share of 0 earns nothing, a share of 1 a call for each request")
    void extremes() {
      RetryBudget nothing = RetryBudget.builder().share(0).perSecond(0).build();
      request(nothing, 1_000);
      assertThat(nothing.tryTake()).isFalse();
      RetryBudget each = RetryBudget.builder().share(1).perSecond(0).build();
      request(each, 7);
      assertThat(takeAll(each)).isEqualTo(7);
    }
  }

  @Nested
  class Threads {
    private static final int MANY = 300_000;
    private static final int TIMES = 6; // one that breaks is seen in about two of three

    /** Takes from many threads until there is none left. */
    private int takeTogether(RetryBudget budget) throws InterruptedException {
      AtomicInteger taken = new AtomicInteger();
      int threads = 4;
      CyclicBarrier start = new CyclicBarrier(threads);
      CountDownLatch done = new CountDownLatch(threads);
      for (int t = 0; t < threads; t++) {
        new Thread(
                () -> {
                  try {
                    start.await();
                    taken.addAndGet(takeAll(budget));
                  } catch (InterruptedException | BrokenBarrierException e) {
                    taken.set(-MANY);
                  } finally {
                    done.countDown();
                  }
                })
            .start();
      }
      assertThat(done.await(30, TimeUnit.SECONDS)).isTrue();
      assertThat(budget.granted()).isEqualTo(taken.get());
      assertThat(budget.refused()).isEqualTo(threads);
      return taken.get();
    }

    @RepeatedTest(TIMES)
    @DisplayName("DL-11 many threads take what was earned, no more and no less")
    void earned() throws InterruptedException {
      RetryBudget budget =
          RetryBudget.builder().share(1).saved(MANY).perSecond(0).scheduler(clock).build();
      request(budget, MANY);
      assertThat(takeTogether(budget)).isEqualTo(MANY);
    }

    @RepeatedTest(TIMES)
    @DisplayName("DL-11 many threads take a second's allowance, no more and no less")
    void allowed() throws InterruptedException {
      RetryBudget budget = RetryBudget.builder().perSecond(MANY).scheduler(clock).build();
      assertThat(takeTogether(budget)).isEqualTo(MANY);
    }
  }

  @Test
  @DisplayName("DL-11 settings out of range are named, with the value and what was expected")
  void settings() {
    assertThatThrownBy(() -> RetryBudget.builder().share(1.1))
        .hasMessage("share: 1.1 (expected: 0 to 1)");
    assertThatThrownBy(() -> RetryBudget.builder().share(Double.NaN))
        .hasMessage("share: NaN (expected: 0 to 1)");
    assertThatThrownBy(() -> RetryBudget.builder().share(-0.1))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> RetryBudget.builder().perSecond(-1))
        .hasMessage("perSecond: -1 (expected: 0 to 1000000)");
    assertThatThrownBy(() -> RetryBudget.builder().saved(1_000_001))
        .hasMessage("saved: 1000001 (expected: 0 to 1000000)");
  }

  @Test
  @DisplayName("DL-11 what is granted and refused is counted, by the budget's name")
  void meters() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    RetryBudget budget =
        RetryBudget.builder().perSecond(2).scheduler(clock).meters(registry, "orders").build();
    for (int i = 0; i < 5; i++) {
      budget.tryTake();
    }
    assertThat(counted(registry, "granted")).isEqualTo(2);
    assertThat(counted(registry, "refused")).isEqualTo(3);
    assertThat(budget).hasToString("RetryBudget[granted=2, refused=3, hedges=0]");
  }

  @Test
  @DisplayName("DL-11 hedges sent, won and lost are counted, by the budget's name")
  void hedges() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    RetryBudget budget = RetryBudget.builder().meters(registry, "orders").build();
    ManualScheduler timers = new ManualScheduler();
    List<MonoSink<String>> calls = new ArrayList<>();
    Mono<String> hedged =
        Mono.<String>create(calls::add)
            .transform(Deadlines.hedge(Duration.ofMillis(50), budget))
            .contextWrite(c -> Deadlines.put(c, Deadline.after(Duration.ofHours(1), timers)));
    for (List<Integer> answering :
        List.of(List.of(1), List.of(0), List.of(0), List.<Integer>of(), List.of(-1, 0))) {
      calls.clear();
      Recorder<String> recorder = new Recorder<>();
      hedged.subscribe(recorder);
      timers.pass(Duration.ofMillis(50));
      timers.fire();
      for (int call : answering) {
        if (call < 0) {
          calls.get(1).error(new IllegalStateException());
        } else {
          calls.get(call).success("x");
        }
      }
      recorder.subscription().cancel();
    }
    hedged.subscribe();
    calls.get(calls.size() - 1).success("in time");
    assertThat(hedges(registry, "sent")).isEqualTo(5).isEqualTo(budget.hedges());
    assertThat(hedges(registry, "won")).isEqualTo(1).isEqualTo(budget.hedgesWon());
    assertThat(hedges(registry, "lost")).isEqualTo(3).isEqualTo(budget.hedgesLost());
  }

  private static double hedges(SimpleMeterRegistry registry, String what) {
    return registry.get("timebound.hedges." + what).tag("name", "orders").functionCounter().count();
  }

  private static double counted(SimpleMeterRegistry registry, String outcome) {
    return registry
        .get("timebound.retry.budget")
        .tag("name", "orders")
        .tag("outcome", outcome)
        .functionCounter()
        .count();
  }

  /** The time of another. */
  private static class DelegatingClock implements Scheduler {
    private final Scheduler clock;

    DelegatingClock(Scheduler clock) {
      this.clock = clock;
    }

    @Override
    public long now(TimeUnit unit) {
      return clock.now(unit);
    }

    @Override
    public Disposable schedule(Runnable task) {
      return clock.schedule(task);
    }

    @Override
    public Worker createWorker() {
      return clock.createWorker();
    }
  }
}
