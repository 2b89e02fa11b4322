package dev.timebound.bigtable;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.CallAttempt;
import dev.timebound.health.FailureKind;
import io.github.resilience4j.core.IntervalFunction;
import io.grpc.Status;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import reactor.core.publisher.Mono;

/**
 * Attempts of a call whose answer comes as a whole: each avoids the channels that failed before it,
 * and waits for its headers no longer than headersTimeout. (BT-34 … BT-36)
 */
final class BigtableRetry {
  private final BigtableSettings settings;
  private final IntervalFunction backoff;

  BigtableRetry(BigtableSettings settings) {
    this.settings = settings;
    this.backoff = settings.backoff();
  }

  /**
   * @param operation what the deadline's ledger calls it
   */
  <T> Mono<T> around(String operation, Function<CallAttempt, Mono<T>> call) {
    return Mono.deferContextual(
        context -> new Attempts<>(operation, call, Deadlines.current(context)).next());
  }

  /** Those of one subscription, one after the other. */
  private final class Attempts<T> {
    private final String operation;
    private final Function<CallAttempt, Mono<T>> call;
    private final Deadline deadline;
    private final Set<String> avoid = new HashSet<>();
    private int number;

    Attempts(String operation, Function<CallAttempt, Mono<T>> call, Deadline deadline) {
      this.operation = operation;
      this.call = call;
      this.deadline = deadline;
    }

    Mono<T> next() {
      number++;
      CallAttempt attempt = CallAttempt.avoiding(avoid);
      long began = settings.scheduler().now(TimeUnit.NANOSECONDS);
      return Mono.firstWithSignal(call.apply(attempt), noHeaders(attempt))
          .onErrorResume(
              failure -> {
                if (!deadline.isNone()) {
                  deadline.charge(
                      operation + " attempt " + number,
                      settings.scheduler().now(TimeUnit.NANOSECONDS) - began);
                }
                return retry(attempt, failure);
              });
    }

    private Mono<T> retry(CallAttempt attempt, Throwable failure) {
      BigtableStatuses.Verdict verdict =
          BigtableStatuses.of(failure, CallEnd.EndedBy.PEER, attempt.isSent());
      if (verdict == null || !verdict.retryable() || number >= settings.maxAttempts()) {
        return Mono.error(failure);
      }
      long pause =
          Math.max(TimeUnit.MILLISECONDS.toNanos(backoff.apply(number)), verdict.retryDelayNanos());
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
