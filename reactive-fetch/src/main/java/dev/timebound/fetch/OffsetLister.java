package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.FailureKind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * One {@code listOffsets}: each partition within its share, those held back last (FE-16). Where
 * partitions are read at the same time a share is half of what is left. One that is held back is
 * only tried, alone too: a client that waits for it asks again, and has others to ask for. Once the
 * penalty is over it has its whole share.
 */
final class OffsetLister {
  private final FetchParts parts;
  private final Isolation isolation;
  private final RequestClock clock;
  private final Map<TopicPartition, OffsetQuery> queries = new LinkedHashMap<>();
  private final Map<TopicPartition, ListedOffset> answers = new ConcurrentHashMap<>();
  private final AtomicInteger left;

  OffsetLister(FetchParts parts, List<OffsetQuery> asked, Isolation isolation, Deadline deadline) {
    this.parts = parts;
    this.isolation = isolation;
    this.clock = new RequestClock(deadline);
    this.left = new AtomicInteger(asked.size());
    asked.forEach(query -> queries.put(query.partition(), query));
  }

  /** In the order in which they were asked for. */
  Mono<List<ListedOffset>> list() {
    return Mono.defer(() -> parts.store().existing(queries.keySet()))
        .defaultIfEmpty(Set.of())
        .transform(Deadlines.of(clock.at(clock.total() / 4), "list offsets metadata"))
        .map(
            existing -> {
              queries.keySet().stream()
                  .filter(partition -> !existing.contains(partition))
                  .forEach(p -> fail(p, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, null));
              return true;
            })
        .onErrorResume(
            error -> {
              queries.keySet().forEach(partition -> fail(partition, code(error), error));
              return Mono.just(true);
            })
        .flatMapMany(known -> all())
        .then(Mono.fromSupplier(this::inOrder));
  }

  private Flux<ListedOffset> all() {
    Flux<TopicPartition> order =
        Flux.fromIterable(parts.health().inOrder(List.copyOf(queries.keySet())));
    Turns.Limits limits = parts.settings().limits();
    return limits.together()
        ? order.flatMap(this::one, limits.atOnce())
        : order.concatMap(this::one, 0);
  }

  private Mono<ListedOffset> one(TopicPartition partition) {
    int partitionsLeft = left.getAndDecrement();
    OffsetQuery query = queries.get(partition);
    if (query == null || answers.containsKey(partition)) {
      return Mono.empty();
    }
    long now = clock.now();
    if (now >= clock.total()) {
      abandoned(partition, Abandoned.Stage.NOT_STARTED);
      fail(partition, ErrorCode.REQUEST_TIMED_OUT, null);
      return Mono.empty();
    }
    boolean heldBack = parts.health().isPenalised(partition);
    long share = share(heldBack, clock.total() - now, partitionsLeft);
    ReadTrace trace = new ReadTrace();
    return Mono.defer(() -> ask(query))
        .switchIfEmpty(
            Mono.error(() -> new IllegalStateException("the store gave no offset, and no error")))
        .transform(Deadlines.of(clock.at(now + share), "list offsets"))
        .contextWrite(context -> context.put(ReadTrace.class, trace))
        .doOnNext(
            found -> {
              parts.health().answered(partition);
              answers.put(partition, found);
            })
        .onErrorResume(
            error -> {
              if (error instanceof DeadlineExceededException) {
                abandoned(partition, trace.stage());
                if (!heldBack
                    && share >= Shares.LEAST_MARGIN
                    && trace.stage() == Abandoned.Stage.READING) {
                  parts.health().failed(partition, FailureKind.CONNECTION);
                }
              } else {
                parts.abandonments().failed(partition, -1, error);
              }
              fail(partition, code(error), error);
              return Mono.empty();
            });
  }

  private long share(boolean heldBack, long timeLeft, int partitionsLeft) {
    if (heldBack) {
      return Math.min(timeLeft / 2, parts.settings().slowAfter().toNanos());
    }
    return parts.settings().limits().together() && queries.size() > 1
        ? timeLeft / 2
        : parts.settings().policy().share(timeLeft, partitionsLeft);
  }

  private Mono<ListedOffset> ask(OffsetQuery query) {
    TopicPartition partition = query.partition();
    return switch (query.kind()) {
      case AT -> timed(partition, parts.store().offsetFor(partition, query.timestamp(), isolation));
      case MAX_TIMESTAMP ->
          timed(
              partition,
              Deadlines.defer(
                  deadline -> LatestTimestamp.of(parts.store(), partition, isolation, deadline)));
      case EARLIEST ->
          parts
              .store()
              .authoritativeOffsets(partition)
              .map(o -> ListedOffset.found(partition, o.logStart(), -1));
      case LATEST ->
          parts
              .store()
              .authoritativeOffsets(partition)
              .map(o -> ListedOffset.found(partition, o.end(isolation), -1));
    };
  }

  private static Mono<ListedOffset> timed(TopicPartition partition, Mono<TimestampOffset> search) {
    return search.map(found -> ListedOffset.found(partition, found.offset(), found.timestamp()));
  }

  private void abandoned(TopicPartition partition, Abandoned.Stage stage) {
    parts
        .abandonments()
        .abandoned(new Abandoned(Abandoned.Operation.LIST_OFFSETS, stage), partition, -1, true);
  }

  private void fail(TopicPartition partition, ErrorCode error, @Nullable Throwable cause) {
    answers.put(partition, ListedOffset.failed(partition, error, cause));
  }

  /** A stalled one is never told as one that has no such offset. */
  private static ErrorCode code(Throwable error) {
    return error instanceof DeadlineExceededException
        ? ErrorCode.REQUEST_TIMED_OUT
        : ErrorCode.STORAGE_ERROR;
  }

  private List<ListedOffset> inOrder() {
    List<ListedOffset> all = new ArrayList<>(queries.size());
    for (TopicPartition partition : queries.keySet()) {
      ListedOffset answer = answers.get(partition);
      all.add(
          answer == null
              ? ListedOffset.failed(partition, ErrorCode.REQUEST_TIMED_OUT, null)
              : answer);
    }
    return all;
  }
}
