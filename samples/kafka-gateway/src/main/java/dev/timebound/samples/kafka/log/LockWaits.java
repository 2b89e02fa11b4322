package dev.timebound.samples.kafka.log;

import dev.timebound.fetch.TopicPartition;
import io.r2dbc.spi.R2dbcException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.util.retry.Retry;

/**
 * Partitions whose lock somebody else holds for long. Who wants one asks for a moment, and again
 * after a pause in which it holds no connection: of the places for appends such a partition takes a
 * fifth of one. Thread-safe.
 */
final class LockWaits {
  /** Others who append hold it for a few milliseconds. */
  static final Duration LONGEST = Duration.ofMillis(250);

  private static final Duration PAUSE = Duration.ofSeconds(1);
  private static final String NOT_AVAILABLE = "55P03";

  /** It is held by somebody; no error of the append. */
  private static final class HeldException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    HeldException() {
      super("the partition's lock is held", null, false, false);
    }
  }

  private final Scheduler time = Schedulers.parallel();

  /** Not before, on the scheduler's clock. */
  private final Map<TopicPartition, Long> again = new ConcurrentHashMap<>();

  /**
   * Work that fails where the lock is held longer than {@link #LONGEST}, until it does not.
   *
   * @param admitted what gives an attempt its place
   */
  <T> Mono<T> through(TopicPartition partition, UnaryOperator<Mono<T>> admitted, Mono<T> work) {
    Mono<T> attempt =
        Mono.defer(() -> left(partition) > 0 ? Mono.error(HeldException::new) : work)
            .doOnSuccess(done -> again.remove(partition))
            .onErrorMap(LockWaits::isHeld, error -> held(partition));
    return Mono.defer(() -> pause(partition).then(admitted.apply(attempt)))
        .retryWhen(Retry.indefinitely().filter(HeldException.class::isInstance));
  }

  private static boolean isHeld(Throwable error) {
    return error instanceof R2dbcException sql && NOT_AVAILABLE.equals(sql.getSqlState());
  }

  private HeldException held(TopicPartition partition) {
    again.put(partition, time.now(TimeUnit.NANOSECONDS) + PAUSE.toNanos());
    return new HeldException();
  }

  private long left(TopicPartition partition) {
    @Nullable Long at = again.get(partition);
    return at == null ? 0 : at - time.now(TimeUnit.NANOSECONDS);
  }

  private Mono<Void> pause(TopicPartition partition) {
    long left = left(partition);
    return left > 0 ? Mono.delay(Duration.ofNanos(left), time).then() : Mono.empty();
  }
}
