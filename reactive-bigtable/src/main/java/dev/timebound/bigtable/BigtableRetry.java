package dev.timebound.bigtable;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.CallAttempt;
import io.github.resilience4j.core.IntervalFunction;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Function;
import reactor.core.publisher.Mono;

/**
 * Attempts of a call whose answer comes as a whole: each avoids the channels that failed before it.
 * (BT-34 … BT-36)
 */
final class BigtableRetry {
  private final BigtableSettings settings;
  private final IntervalFunction backoff;

  BigtableRetry(BigtableSettings settings) {
    this.settings = settings;
    this.backoff = settings.backoff();
  }

  <T> Mono<T> around(Function<CallAttempt, Mono<T>> call) {
    return Mono.deferContextual(
        context -> attempt(call, 1, new HashSet<>(), Deadlines.current(context)));
  }

  private <T> Mono<T> attempt(
      Function<CallAttempt, Mono<T>> call, int number, Set<String> avoid, Deadline deadline) {
    CallAttempt attempt = CallAttempt.avoiding(avoid);
    return call.apply(attempt)
        .onErrorResume(
            failure -> {
              BigtableStatuses.Verdict verdict =
                  BigtableStatuses.of(failure, CallEnd.EndedBy.PEER, attempt.isSent());
              if (verdict == null) {
                return Mono.error(failure);
              }
              Duration pause = Duration.ofMillis(backoff.apply(number));
              Duration asked = verdict.retryDelay();
              if (asked != null && asked.compareTo(pause) > 0) {
                pause = asked;
              }
              if (!verdict.retryable()
                  || number >= settings.maxAttempts()
                  || deadline.remainingNanos() <= pause.toNanos()) {
                return Mono.error(failure);
              }
              String channel = attempt.channel();
              if (channel != null) {
                avoid.add(channel);
              }
              return Mono.delay(pause, settings.scheduler())
                  .then(Mono.defer(() -> attempt(call, number + 1, avoid, deadline)));
            });
  }
}
