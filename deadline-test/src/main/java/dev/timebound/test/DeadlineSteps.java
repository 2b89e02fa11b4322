package dev.timebound.test;

import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.deadline.LedgerEntry;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.reactivestreams.Publisher;
import reactor.test.StepVerifier;

/**
 * Steps of a {@link StepVerifier} for pipelines that a deadline bounds, in virtual time.
 *
 * <pre>{@code
 * DeadlineSteps.expectDeadlineExceeded(
 *         DeadlineSteps.within(Duration.ofMillis(800), () -> orders.open()).expectNext(first),
 *         Duration.ofMillis(800),
 *         DeadlineSteps.operation("orders.open").andThen(DeadlineSteps.charged("pg.proof", "orders.read")))
 *     .verify();
 * }</pre>
 */
public final class DeadlineSteps {
  private static final Duration TICK = Duration.ofNanos(1);

  private DeadlineSteps() {}

  /**
   * Starts a verification in virtual time of a pipeline that is bound as an edge binds a request:
   * {@code Deadlines.within(budget)} downstream of it, so that the Context carries the deadline.
   * The budget starts at the subscription, which has happened when the first step of the test's own
   * runs.
   *
   * @param pipeline makes it, once, under virtual time; what takes time in it must be made in there
   */
  public static <T> StepVerifier.Step<T> within(
      Duration budget, Supplier<? extends Publisher<T>> pipeline) {
    Objects.requireNonNull(budget, "budget");
    Objects.requireNonNull(pipeline, "pipeline");
    return StepVerifier.withVirtualTime(() -> Deadlines.<T>within(budget).apply(pipeline.get()))
        .expectSubscription();
  }

  /** As {@link #within(Duration, Supplier)}, with the name of the operation for the error. */
  public static <T> StepVerifier.Step<T> within(
      Duration budget, String operation, Supplier<? extends Publisher<T>> pipeline) {
    Objects.requireNonNull(budget, "budget");
    Objects.requireNonNull(operation, "operation");
    Objects.requireNonNull(pipeline, "pipeline");
    return StepVerifier.withVirtualTime(
            () -> Deadlines.<T>within(budget, operation).apply(pipeline.get()))
        .expectSubscription();
  }

  /**
   * Ends a verification in virtual time: nothing comes before {@code in} has passed, counted from
   * the step before, and at that very instant the pipeline fails with {@link
   * DeadlineExceededException}.
   *
   * @param in zero where the deadline has passed already
   * @throws IllegalArgumentException where {@code in} is negative
   */
  public static StepVerifier expectDeadlineExceeded(StepVerifier.Step<?> steps, Duration in) {
    return expectDeadlineExceeded(steps, in, error -> {});
  }

  /**
   * As {@link #expectDeadlineExceeded(StepVerifier.Step, Duration)}, and the error is as {@code
   * also} says: {@link #operation}, {@link #charged}, or assertions of the test's own.
   */
  public static StepVerifier expectDeadlineExceeded(
      StepVerifier.Step<?> steps, Duration in, Consumer<? super DeadlineExceededException> also) {
    if (in.isNegative()) {
      throw new IllegalArgumentException("in: " + in + " (expected: >= 0)");
    }
    StepVerifier.Step<?> waited = steps;
    if (in.compareTo(TICK) > 0) {
      waited = waited.expectNoEvent(in.minus(TICK));
    }
    if (!in.isZero()) {
      waited = waited.thenAwait(TICK);
    }
    return waited.expectErrorSatisfies(
        error -> {
          if (!(error instanceof DeadlineExceededException exceeded)) {
            throw new AssertionError(
                "expected: DeadlineExceededException; but it is " + error, error);
          }
          also.accept(exceeded);
        });
  }

  /** Asserts who was bound by the deadline. */
  public static Consumer<DeadlineExceededException> operation(String expected) {
    return error -> {
      if (!error.operation().equals(expected)) {
        throw new AssertionError(
            "expected operation: " + expected + "; but it is " + error.operation(), error);
      }
    };
  }

  /** Asserts whose time the ledger shows: these steps, in order, and no other. */
  public static Consumer<DeadlineExceededException> charged(String... steps) {
    List<String> expected = List.of(steps);
    return error -> {
      List<String> found = error.ledger().stream().map(LedgerEntry::step).toList();
      if (!found.equals(expected)) {
        throw new AssertionError(
            "expected charges: " + expected + "; but they are " + error.ledger(), error);
      }
    };
  }
}
