package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.scheduler.VirtualTimeScheduler;

/**
 * A backend that serves 250 calls a second, asked 200 times a second, loses half of what it can do
 * for 20 s: what is beyond that fails. A model, in virtual time.
 */
@Timeout(60)
class BrownOutTest {
  private static final int REQUESTS_PER_SECOND = 200;
  private static final int SECONDS = 60;
  private static final int FROM = 20;
  private static final int TO = 40;

  private VirtualTimeScheduler time;
  private final int[] calls = new int[SECONDS + 10];

  @BeforeEach
  void virtualTime() {
    time = VirtualTimeScheduler.getOrSet();
  }

  @AfterEach
  void realTime() {
    VirtualTimeScheduler.reset();
  }

  private boolean isBrownedOut(int second) {
    return second >= FROM && second < TO;
  }

  /** Serves so many calls in each tenth of a second. */
  private Mono<String> failing() {
    int[] tenth = {-1, 0};
    return Mono.defer(
        () -> {
          long now = time.now(TimeUnit.MILLISECONDS);
          int second = (int) (now / 1_000);
          calls[second]++;
          if (tenth[0] != now / 100) {
            tenth[0] = (int) (now / 100);
            tenth[1] = 0;
          }
          int capacity = isBrownedOut(second) ? 10 : 25;
          return ++tenth[1] > capacity ? Mono.error(new IOException("busy")) : Mono.just("served");
        });
  }

  /** Takes 500 ms for an answer instead of 10 ms. */
  private Mono<String> slow() {
    return Mono.defer(
        () -> {
          int second = (int) (time.now(TimeUnit.MILLISECONDS) / 1_000);
          calls[second]++;
          return Mono.delay(Duration.ofMillis(isBrownedOut(second) ? 500 : 10))
              .thenReturn("served");
        });
  }

  /** Calls for each request while the backend is browned out. */
  private double amplification(Mono<String> backend, UnaryOperator<Mono<String>> guard) {
    Flux.interval(Duration.ofMillis(1_000 / REQUESTS_PER_SECOND))
        .take((long) SECONDS * REQUESTS_PER_SECOND)
        .flatMap(
            i ->
                backend
                    .transform(guard)
                    .transform(Deadlines.within(Duration.ofSeconds(1)))
                    .onErrorComplete(),
            Integer.MAX_VALUE)
        .subscribe();
    time.advanceTimeBy(Duration.ofSeconds(SECONDS + 5));
    int during = 0;
    for (int second = FROM; second < TO; second++) {
      during += calls[second];
    }
    return (double) during / ((TO - FROM) * REQUESTS_PER_SECOND);
  }

  /** What the budget's contract allows of calls for each request, in this stretch of time. */
  private static double allowed() {
    int seconds = TO - FROM;
    double extra =
        RetryBudget.DEFAULT_SAVED
            + RetryBudget.DEFAULT_SHARE * seconds * REQUESTS_PER_SECOND
            + RetryBudget.DEFAULT_PER_SECOND * (seconds + 1.0);
    return 1 + extra / (seconds * REQUESTS_PER_SECOND);
  }

  private static RetryWithin retry() {
    return RetryWithin.maxRetries(3).backoff(Duration.ofMillis(20), Duration.ofMillis(100));
  }

  @Test
  @DisplayName("DL-11 a brown-out: without a budget the retries multiply the load")
  void retriesWithoutBudget() {
    assertThat(amplification(failing(), mono -> mono.retryWhen(retry()))).isGreaterThan(2);
  }

  @Test
  @DisplayName("DL-11 a brown-out: with a budget the retries add what it allows and no more")
  void retriesWithBudget() {
    RetryBudget budget = RetryBudget.create();
    assertThat(amplification(failing(), mono -> mono.retryWhen(retry().budget(budget))))
        .isBetween(1.2, allowed());
    assertThat(budget.refused()).isPositive();
  }

  @Test
  @DisplayName("DL-11 a backend that grows slow: hedges add what the budget allows and no more")
  void hedges() {
    RetryBudget all = RetryBudget.builder().share(1).build();
    Duration after = Duration.ofMillis(50);
    assertThat(amplification(slow(), Deadlines.hedge(after, all))).isGreaterThan(1.9);
    java.util.Arrays.fill(calls, 0);
    VirtualTimeScheduler.reset();
    time = VirtualTimeScheduler.getOrSet();
    RetryBudget budget = RetryBudget.create();
    assertThat(amplification(slow(), Deadlines.hedge(after, budget))).isBetween(1.2, allowed());
    assertThat(budget.refused()).isPositive();
  }
}
