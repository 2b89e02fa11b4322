package dev.timebound.deadline;

import io.github.resilience4j.core.IntervalFunction;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.Exceptions;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/**
 * A Reactor {@link Retry} that knows the deadline (DL-8): it backs off with jitter, and gives up,
 * with the last error as it came, once what is left of the Context's {@link Deadline} would not
 * cover the next pause and the least time that is of use to a call. Where a plain retry would sleep
 * on until the deadline cuts it off, the caller hears at once, and hears the reason.
 *
 * <pre>{@code
 * call.retryWhen(RetryWithin.maxRetries(3).filter(Unavailable.class::isInstance).budget(budget))
 *     .transform(Deadlines.within(Duration.ofMillis(800)));
 * }</pre>
 *
 * <p>The deadline is read at each subscription, so the bound stands downstream of the {@code
 * retryWhen}. A bound upstream of it limits each attempt, and what it fails with may be retried.
 * Without a deadline only the other settings count. The pauses run on the deadline's scheduler, and
 * each is charged to its ledger as {@code <operation> pause 1} (DL-5).
 *
 * <p>An error is retried where all of these hold, asked in this order: it passes the filter; the
 * retries are not used up; the time suffices; the {@linkplain #budget budget} grants it. Else it is
 * what downstream gets. After the pause the time is looked at once more, for the timer may be late.
 * A function handed in that throws ends the retries: downstream gets what it threw, with the last
 * error suppressed in it. So does a scheduler that takes no timer: downstream gets the last error.
 *
 * <p>Immutable: each method gives a copy, so one can be shared and varied.
 */
public final class RetryWithin extends Retry {
  /** 10 ms: the default of {@link #leastUsefulTime}. */
  public static final Duration DEFAULT_LEAST_USEFUL_TIME = Duration.ofMillis(10);

  private static final Duration FIRST = Duration.ofMillis(20);
  private static final Duration MAX = Duration.ofSeconds(1);

  private static final double JITTER = 0.5;

  /** The interval functions take as many steps as the attempt's number. */
  private static final int STEPS = 64;

  private final Settings settings;

  private record Settings(
      long retries,
      boolean inARow,
      IntervalFunction backoff,
      Predicate<? super Throwable> filter,
      Function<? super Throwable, ? extends @Nullable Duration> asked,
      long least,
      @Nullable RetryBudget budget,
      String operation) {}

  private RetryWithin(Settings settings) {
    this.settings = settings;
  }

  /**
   * At most so many retries, which makes one call more; 0 retries nothing. {@link Long#MAX_VALUE}:
   * as many as the deadline lets through.
   *
   * @throws IllegalArgumentException where retries is negative
   */
  public static RetryWithin maxRetries(long retries) {
    if (retries < 0) {
      throw new IllegalArgumentException("maxRetries: " + retries + " (expected: >= 0)");
    }
    return new RetryWithin(
        new Settings(
            retries,
            false,
            spread(FIRST, MAX),
            error -> true,
            error -> null,
            DEFAULT_LEAST_USEFUL_TIME.toNanos(),
            null,
            "retry"));
  }

  /**
   * The pauses double from {@code first}, each half as long to one and a half times as long as
   * that, at random, and never longer than {@code max}. By default from 20 ms to 1 s. The jitter
   * holds at the longest pause too, so that callers who failed together do not return together.
   *
   * @throws IllegalArgumentException where first is below 1 ms, or max below first
   */
  public RetryWithin backoff(Duration first, Duration max) {
    Objects.requireNonNull(first, "backoff.first");
    Objects.requireNonNull(max, "backoff.max");
    if (first.compareTo(Duration.ofMillis(1)) < 0) {
      throw new IllegalArgumentException("backoff.first: " + first + " (expected: >= PT0.001S)");
    }
    if (max.compareTo(first) < 0) {
      throw new IllegalArgumentException("backoff.max: " + max + " (expected: >= " + first + ")");
    }
    return backoff(spread(first, max));
  }

  /**
   * The pause in milliseconds before each retry, by its number from 1 to {@value #STEPS}; later
   * ones ask for {@value #STEPS} again. Zero or negative: no pause.
   */
  public RetryWithin backoff(IntervalFunction backoff) {
    Objects.requireNonNull(backoff, "backoff");
    return with(settings.retries, settings.inARow, backoff, settings.filter, settings.asked);
  }

  /** Which errors may be retried; all of them by default. */
  public RetryWithin filter(Predicate<? super Throwable> filter) {
    Objects.requireNonNull(filter, "filter");
    return with(settings.retries, settings.inARow, settings.backoff, filter, settings.asked);
  }

  /**
   * The shortest pause that whoever failed asked for, such as the delay of a {@code RetryInfo} or a
   * {@code Retry-After}; null where it asked for none, as by default. The pause is the longer of
   * this and the backoff, whatever the backoff's maximum is.
   */
  public RetryWithin minDelay(Function<? super Throwable, ? extends @Nullable Duration> asked) {
    Objects.requireNonNull(asked, "minDelay");
    return with(settings.retries, settings.inARow, settings.backoff, settings.filter, asked);
  }

  /**
   * Whether an item sets the count of retries and the backoff back, for a stream that resumes. Off
   * by default: all retries of a subscription count.
   */
  public RetryWithin transientErrors(boolean transientErrors) {
    return with(
        settings.retries, transientErrors, settings.backoff, settings.filter, settings.asked);
  }

  /**
   * What must be left for a call when it starts, 10 ms by default: where less would be left after
   * the pause, no retry starts. Zero: anything above nothing.
   *
   * @throws IllegalArgumentException where it is negative
   */
  public RetryWithin leastUsefulTime(Duration least) {
    return with(nanos(least), settings.budget, settings.operation);
  }

  /** The budget that each retry is taken from (DL-11); none by default. */
  public RetryWithin budget(RetryBudget budget) {
    Objects.requireNonNull(budget, "budget");
    return with(settings.least, budget, settings.operation);
  }

  /** What the ledger calls the pauses, {@code retry} by default. */
  public RetryWithin operation(String operation) {
    Objects.requireNonNull(operation, "operation");
    return with(settings.least, settings.budget, operation);
  }

  /** For {@code retryWhen}: not to be called by users. */
  @Override
  public Publisher<?> generateCompanion(Flux<RetrySignal> signals) {
    return Flux.deferContextual(
        context -> {
          Deadline deadline = Deadlines.current(context);
          if (settings.budget != null) {
            settings.budget.requested();
          }
          return signals.concatMap(signal -> next(signal, deadline));
        });
  }

  private Mono<Long> next(RetrySignal signal, Deadline deadline) {
    Throwable error = signal.failure();
    long before = settings.inARow ? signal.totalRetriesInARow() : signal.totalRetries();
    try {
      return next(error, before, deadline);
    } catch (Throwable thrown) {
      Exceptions.throwIfJvmFatal(thrown);
      if (thrown != error) {
        thrown.addSuppressed(error);
      }
      return Mono.error(thrown);
    }
  }

  private Mono<Long> next(Throwable error, long before, Deadline deadline) {
    if (!settings.filter.test(error) || before >= settings.retries) {
      return Mono.error(error);
    }
    long pause = pause(error, before);
    if (!suffices(deadline, pause)) {
      return Mono.error(error);
    }
    if (settings.budget != null && !settings.budget.tryTake()) {
      return Mono.error(error);
    }
    if (pause == 0) {
      return Mono.just(before);
    }
    long since = deadline.remainingNanos();
    return Mono.delay(Duration.ofNanos(pause), deadline.scheduler())
        .onErrorMap(noTimer -> error)
        .flatMap(
            tick -> {
              deadline.charge(
                  settings.operation + " pause " + (before + 1), since - deadline.remainingNanos());
              return suffices(deadline, 0) ? Mono.just(before) : Mono.error(error);
            });
  }

  private long pause(Throwable error, long before) {
    long millis = settings.backoff.apply((int) Math.min(before + 1, STEPS));
    long backoff = TimeUnit.MILLISECONDS.toNanos(Math.max(0, millis));
    Duration asked = settings.asked.apply(error);
    long least = asked == null ? 0 : Durations.nanos(asked);
    return Math.min(Math.max(backoff, least), Deadline.MAX_NANOS);
  }

  /** Neither a pause nor a least time is more than 100 years, so that the sum does not overflow. */
  private boolean suffices(Deadline deadline, long pause) {
    long left = deadline.remainingNanos();
    return left > pause && left - pause >= settings.least;
  }

  private RetryWithin with(
      long retries,
      boolean inARow,
      IntervalFunction backoff,
      Predicate<? super Throwable> filter,
      Function<? super Throwable, ? extends @Nullable Duration> asked) {
    return new RetryWithin(
        new Settings(
            retries,
            inARow,
            backoff,
            filter,
            asked,
            settings.least,
            settings.budget,
            settings.operation));
  }

  private RetryWithin with(long least, @Nullable RetryBudget budget, String operation) {
    return new RetryWithin(
        new Settings(
            settings.retries,
            settings.inARow,
            settings.backoff,
            settings.filter,
            settings.asked,
            least,
            budget,
            operation));
  }

  private static long nanos(Duration least) {
    Objects.requireNonNull(least, "leastUsefulTime");
    if (least.isNegative()) {
      throw new IllegalArgumentException("leastUsefulTime: " + least + " (expected: >= 0)");
    }
    return Durations.nanos(least);
  }

  /**
   * The library's own randomized backoff is cut off at its maximum after the jitter, which leaves
   * none there: so the jitter comes last here, below a ceiling that makes room for it.
   */
  private static IntervalFunction spread(Duration first, Duration max) {
    long ceiling = Math.max(1, (long) (millis(max) / (1 + JITTER)));
    long start = Math.min(millis(first), ceiling);
    IntervalFunction middle =
        start == ceiling
            ? IntervalFunction.of(start)
            : IntervalFunction.ofExponentialBackoff(start, 2.0, ceiling);
    return retry -> IntervalFunction.ofRandomized(middle.apply(retry), JITTER).apply(1);
  }

  private static long millis(Duration duration) {
    return TimeUnit.NANOSECONDS.toMillis(Durations.nanos(duration));
  }
}
