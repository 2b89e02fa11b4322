package dev.timebound.bigtable;

import dev.timebound.bigtable.BigtableObservations.Observed;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.CallAttempt;
import dev.timebound.health.FailureKind;
import io.github.resilience4j.core.IntervalFunction;
import io.grpc.CallOptions;
import io.grpc.Status;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * Attempts of a call whose answer comes as a whole: each avoids the channels that failed before it,
 * and waits for its headers no longer than headersTimeout. (BT-34 … BT-36)
 */
final class BigtableRetry {
  private final BigtableSettings settings;
  private final CallOptions options;
  private final BigtableObservations observations;
  private final IntervalFunction backoff;

  BigtableRetry(BigtableSettings settings, CallOptions options, BigtableObservations observations) {
    this.settings = settings;
    this.options = options;
    this.observations = observations;
    this.backoff = settings.backoff();
  }

  /**
   * @param what how it is named to the deadline's ledger and error, and to those who watch
   * @param resource the full name of the table, or of the instance
   * @param call an attempt, with these options
   */
  <T> Mono<T> around(ObservedCall what, String resource, Function<CallOptions, Mono<T>> call) {
    return Mono.deferContextual(
            context -> {
              Attempts<T> attempts =
                  new Attempts<>(what.operation, call, Deadlines.current(context));
              Observed observed = observations.begin(what, resource, context);
              return attempts
                  .next()
                  .doOnSuccess(answer -> attempts.ended(observed, BigtableMeters.OK, null))
                  .doOnError(e -> attempts.ended(observed, BigtableMeters.outcome(e), e))
                  .doOnCancel(() -> attempts.cancelled(observed));
            })
        .name(what.operation);
  }

  /** Those of one subscription, one after the other. */
  private final class Attempts<T> {
    private final String operation;
    private final Function<CallOptions, Mono<T>> call;
    private final Deadline deadline;
    private final AttemptHeaders headers = new AttemptHeaders();
    private final Set<String> avoid = new HashSet<>();
    private final AtomicBoolean over = new AtomicBoolean();

    /** Number of the last attempt that was charged. */
    private final AtomicInteger charged = new AtomicInteger();

    /** How often the server told when to come back: those attempts do not count. (BT-38) */
    private volatile int told;

    // of the last attempt
    private volatile int number;
    private volatile long began;
    private volatile @Nullable CallAttempt last;

    Attempts(String operation, Function<CallOptions, Mono<T>> call, Deadline deadline) {
      this.operation = operation;
      this.call = call;
      this.deadline = deadline;
    }

    Mono<T> next() {
      int made = number;
      CallAttempt attempt = CallAttempt.avoiding(avoid);
      last = attempt;
      number = made + 1; // the attempts come one after the other
      began = settings.scheduler().now(TimeUnit.NANOSECONDS);
      CallOptions own =
          options.withOption(CallAttempt.KEY, attempt).withOption(AttemptHeaders.KEY, headers);
      return Mono.firstWithSignal(call.apply(own), noHeaders(attempt))
          .doOnSuccess(answer -> charge())
          .onErrorResume(
              failure -> {
                charge();
                return retry(attempt, failure);
              });
    }

    /** Once an attempt: a cancel may come after its failure. */
    private void charge() {
      int current = number;
      if (!deadline.isNone() && charged.getAndSet(current) != current) {
        deadline.charge(
            operation + " attempt " + current,
            settings.scheduler().now(TimeUnit.NANOSECONDS) - began);
      }
    }

    /** By the caller, or by its deadline's timer: that is told as what it is. */
    void cancelled(Observed observed) {
      if (over.compareAndSet(false, true)) {
        charge();
        DeadlineExceededException late =
            deadline.isExpired() ? new DeadlineExceededException(operation, deadline) : null;
        tell(observed, late == null ? BigtableMeters.CANCELLED : BigtableMeters.DEADLINE, late);
      }
    }

    void ended(Observed observed, String outcome, @Nullable Throwable failure) {
      if (over.compareAndSet(false, true)) {
        tell(observed, outcome, failure);
      }
    }

    private void tell(Observed observed, String outcome, @Nullable Throwable failure) {
      CallAttempt attempt = last;
      String channel = attempt == null ? null : attempt.channel();
      observed.ended(outcome, failure, number, channel, deadline);
    }

    private Mono<T> retry(CallAttempt attempt, Throwable failure) {
      BigtableStatuses.Verdict verdict =
          BigtableStatuses.of(failure, CallEnd.EndedBy.PEER, attempt.isSent());
      if (verdict == null || !mayRetry(verdict)) {
        return Mono.error(failure);
      }
      int counted = Math.max(1, number - told);
      long pause =
          Math.max(
              TimeUnit.MILLISECONDS.toNanos(backoff.apply(counted)), verdict.retryDelayNanos());
      if (!deadline.isNone() && deadline.remainingNanos() <= pause) {
        // No attempt could start before the deadline. (BT-36)
        return Mono.error(failure);
      }
      String channel = attempt.channel();
      if (channel != null) {
        avoid.add(channel);
      }
      return Mono.delay(Duration.ofNanos(pause), settings.scheduler()).then(Mono.defer(this::next));
    }

    private boolean mayRetry(BigtableStatuses.Verdict verdict) {
      if (!settings.retries() || !verdict.isTold()) {
        return verdict.retryable() && number - told < settings.maxAttempts();
      }
      int all = told + 1; // the attempts come one after the other
      told = all;
      return all <= BigtableSettings.MAX_TOLD_RETRIES;
    }

    private Mono<T> noHeaders(CallAttempt attempt) {
      return Mono.delay(settings.headersTimeout(), settings.scheduler())
          .flatMap(
              tick -> {
                if (attempt.received() != 0) {
                  return Mono.never();
                }
                Throwable cause =
                    Status.DEADLINE_EXCEEDED
                        .withDescription(
                            operation
                                + ": no headers for "
                                + settings.headersTimeout()
                                + ", on "
                                + attempt.channel())
                        .asRuntimeException();
                // The verdict first: the cancel that follows says nothing of the channel.
                attempt.failed(FailureKind.CONNECTION, cause);
                return Mono.error(cause);
              });
    }
  }
}
