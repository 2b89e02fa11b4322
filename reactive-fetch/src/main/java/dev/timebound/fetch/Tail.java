package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.util.retry.Retry;

/** Follows one partition's end, by one Fetch after the other. */
final class Tail {
  private static final Duration WAIT = Duration.ofSeconds(5);
  private static final Duration FIRST_PAUSE = Duration.ofMillis(100);
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(5);

  private final PartitionFetcher fetcher;
  private final Scheduler scheduler;
  private final TopicPartition partition;
  private final Isolation isolation;
  private long next;

  /** The store's, since its last answer. */
  private volatile @Nullable Throwable failure;

  Tail(
      PartitionFetcher fetcher,
      Scheduler scheduler,
      TopicPartition partition,
      long offset,
      Isolation isolation) {
    this.fetcher = fetcher;
    this.scheduler = scheduler;
    this.partition = partition;
    this.isolation = isolation;
    this.next = offset;
  }

  /** To be subscribed once. The next Fetch begins when the last one's batches have been taken. */
  Flux<RecordBatch> batches() {
    return Deadlines.deferMany("tail", this::until);
  }

  private Flux<RecordBatch> until(Deadline deadline) {
    return Mono.defer(this::fetch)
        .doOnError(FetchException.class, error -> failure = error)
        .retryWhen(
            Retry.backoff(Long.MAX_VALUE, FIRST_PAUSE)
                .maxBackoff(LONGEST_PAUSE)
                .scheduler(scheduler)
                .transientErrors(true)
                .filter(e -> e instanceof FetchException f && f.error() == ErrorCode.STORAGE_ERROR))
        .transform(Deadlines.of(deadline, "tail")) // a pause may be longer than what is left
        .onErrorMap(
            DeadlineExceededException.class,
            late -> new DeadlineExceededException("tail", deadline, failure))
        .flatMapIterable(batches -> batches)
        .repeat();
  }

  private Mono<List<RecordBatch>> fetch() {
    FetchRequest request =
        FetchRequest.builder()
            .maxWait(WAIT)
            .isolation(isolation)
            .partition(partition, next)
            .build();
    return fetcher.fetch(request).map(response -> taken(response.partitions().get(0)));
  }

  private List<RecordBatch> taken(PartitionData data) {
    if (data.error() != ErrorCode.NONE) {
      throw new FetchException(partition, next, data.error(), data.cause());
    }
    failure = null;
    List<RecordBatch> batches = data.batches();
    if (!batches.isEmpty()) {
      next = batches.get(batches.size() - 1).nextOffset();
    }
    return batches;
  }
}
