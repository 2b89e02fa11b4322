package dev.timebound.cas;

import dev.timebound.deadline.Deadline;
import io.github.resilience4j.core.IntervalFunction;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Of the blobs of batches, which are asked for again by themselves, and when (CAS-31). */
final class ItemRetries {
  private static final IntervalFunction BACKOFF = RingSettings.retryBackoff();

  private final RingSettings settings;
  private final Deadline caller;
  private final Map<Digest, Integer> tried = new ConcurrentHashMap<>();

  ItemRetries(RingSettings settings, Deadline caller) {
    this.settings = settings;
    this.caller = caller;
  }

  /** Whether a status of one blob asks for another try. */
  static boolean isTransient(Throwable failure) {
    return failure instanceof StatusRuntimeException && ShardStatuses.of(failure).retryable;
  }

  /** Counts a try; false where there were enough. */
  boolean may(Digest digest) {
    return tried.merge(digest, 1, Integer::sum) <= settings.retries();
  }

  /**
   * After a pause.
   *
   * @param failed what is told where the deadline or the budget has no room for it
   */
  <R> Flux<R> after(Collection<Digest> again, Supplier<Flux<R>> call, List<R> failed) {
    if (again.isEmpty()) {
      return Flux.empty();
    }
    return Flux.defer(
        () -> {
          int most = again.stream().mapToInt(d -> tried.getOrDefault(d, 1)).max().orElse(1);
          Duration pause = Duration.ofMillis(BACKOFF.apply(most));
          return caller.remaining().compareTo(pause) > 0 && settings.retryBudget().tryTake()
              ? Mono.delay(pause, settings.scheduler()).thenMany(Flux.defer(call))
              : Flux.fromIterable(failed);
        });
  }

  static StatusRuntimeException failure(Shard shard, Digest digest, com.google.rpc.Status said) {
    return Status.fromCodeValue(said.getCode())
        .withDescription(shard + ": " + digest + ": " + said.getMessage())
        .asRuntimeException();
  }
}
