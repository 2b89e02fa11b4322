package dev.timebound.test;

import static dev.timebound.test.DeadlineSteps.charged;
import static dev.timebound.test.DeadlineSteps.expectDeadlineExceeded;
import static dev.timebound.test.DeadlineSteps.operation;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadlines;
import java.time.Duration;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

class DeadlineStepsTest {
  private static final Duration BUDGET = Duration.ofMillis(800);

  /** Two steps that charge what they took, then a wait for ever. */
  private static Mono<String> twoHopsAndAStall() {
    return Mono.deferContextual(
        context ->
            Mono.delay(Duration.ofMillis(100))
                .doOnNext(
                    any -> Deadlines.current(context).charge("pg.proof", Duration.ofMillis(100)))
                .then(Mono.delay(Duration.ofMillis(200)))
                .doOnNext(
                    any -> Deadlines.current(context).charge("orders.read", Duration.ofMillis(200)))
                .then(Mono.never()));
  }

  @Nested
  class Passes {
    @Test
    @DisplayName("at the very instant of the deadline, with operation and ledger")
    void exact() {
      expectDeadlineExceeded(
              DeadlineSteps.within(BUDGET, "orders.open", DeadlineStepsTest::twoHopsAndAStall),
              BUDGET,
              operation("orders.open").andThen(charged("pg.proof", "orders.read")))
          .verify();
    }

    @Test
    @DisplayName("after other steps, counted from the last of them")
    void afterSteps() {
      expectDeadlineExceeded(
              DeadlineSteps.within(BUDGET, () -> Flux.interval(Duration.ofMillis(300)))
                  .thenAwait(Duration.ofMillis(300))
                  .expectNext(0L)
                  .thenAwait(Duration.ofMillis(300))
                  .expectNext(1L),
              Duration.ofMillis(200))
          .verify();
    }

    @Test
    @DisplayName("where the deadline has passed before anything started")
    void expired() {
      expectDeadlineExceeded(
              DeadlineSteps.within(Duration.ZERO, () -> Mono.just("never")),
              Duration.ZERO,
              charged())
          .verify();
    }

    @Test
    @DisplayName("what is in time is verified as ever")
    void inTime() {
      DeadlineSteps.within(BUDGET, () -> Mono.delay(Duration.ofMillis(799)))
          .thenAwait(BUDGET)
          .expectNext(0L)
          .verifyComplete();
    }
  }

  @Nested
  class Fails {
    @Test
    @DisplayName("where the deadline comes sooner")
    void sooner() {
      fails(
          expectDeadlineExceeded(DeadlineSteps.within(Duration.ofMillis(799), Mono::never), BUDGET),
          "no-event expectation");
    }

    @Test
    @DisplayName("where the error is another one")
    void otherError() {
      fails(
          expectDeadlineExceeded(
              DeadlineSteps.within(
                      BUDGET,
                      () ->
                          Mono.delay(Duration.ofMillis(10))
                              .then(Mono.error(new IllegalStateException("x"))))
                  .thenAwait(Duration.ofMillis(10)),
              Duration.ZERO),
          "expected: DeadlineExceededException");
    }

    @Test
    @DisplayName("where the operation or the ledger is another one")
    void otherAccount() {
      fails(
          expectDeadlineExceeded(
              DeadlineSteps.within(BUDGET, "a", Mono::never), BUDGET, operation("b")),
          "expected operation: b");
      fails(
          expectDeadlineExceeded(
              DeadlineSteps.within(BUDGET, DeadlineStepsTest::twoHopsAndAStall),
              BUDGET,
              charged("orders.read", "pg.proof")),
          "expected charges: [orders.read, pg.proof]");
    }

    @Test
    @DisplayName("where a negative time is asked for")
    void negative() {
      assertThatThrownBy(
              () -> expectDeadlineExceeded(StepVerifier.create(Mono.never()), Duration.ofNanos(-1)))
          .hasMessage("in: PT-0.000000001S (expected: >= 0)");
    }

    private static void fails(StepVerifier verifier, String message) {
      assertThatThrownBy(() -> verifier.verify(Duration.ofSeconds(10)))
          .isInstanceOf(AssertionError.class)
          .hasStackTraceContaining(message);
    }
  }
}
