package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import reactor.core.publisher.Flux;
import reactor.core.publisher.FluxSink;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/**
 * Reads many partitions of a log in one request, each within its share of the request's deadline:
 * one whose storage stalls costs the others as little as can be, and nothing already read is lost.
 *
 * <pre>{@code
 * PartitionFetcher fetcher = PartitionFetcher.builder(store).build();
 * Mono<FetchResponse> answer =
 *     fetcher.fetch(FetchRequest.builder().partition(new TopicPartition("orders", 0), 4711).build());
 * }</pre>
 *
 * <p>A request is answered within {@code max_wait + 5 s} or the caller's own deadline, whichever is
 * the lesser (FE-1), whatever its store does. A partition that stalls answers {@link
 * ErrorCode#NONE} with what was read; an error of one partition is that partition's answer, and
 * never the request's. The one error of the Mono itself is that the caller's deadline had passed at
 * subscription.
 *
 * <p>Nothing is done before subscription; a cancel ends all reads. Answers come on whatever thread
 * ended the last read, or on the scheduler. Thread-safe.
 */
public final class PartitionFetcher implements AutoCloseable {
  private final FetchParts parts;
  private final Runnable close;
  private final PartitionReads reads;

  PartitionFetcher(FetchParts parts, Runnable close) {
    this.parts = parts;
    this.close = close;
    this.reads = parts.store()::read;
  }

  public static PartitionFetcherBuilder builder(PartitionStore store) {
    return new PartitionFetcherBuilder(store);
  }

  /** One answer for each partition, in the order of the request (FE-15). */
  public Mono<FetchResponse> fetch(FetchRequest request) {
    return fetch(request, reads);
  }

  /**
   * Each partition's answer when it has one: at once where it brought something or has an error the
   * client must act on, else when the request is over. A partition that brought something is not
   * read again while the request waits for its min_bytes.
   */
  public Flux<PartitionData> fetchEach(FetchRequest request) {
    return fetchEach(request, reads);
  }

  /** As {@link #tail(TopicPartition, long, Isolation)}, READ_UNCOMMITTED. */
  public Flux<RecordBatch> tail(TopicPartition partition, long offset) {
    return tail(partition, offset, Isolation.READ_UNCOMMITTED);
  }

  /**
   * The batches of one partition from an offset on, in order, and then each as it is appended.
   * Never completes. At most the batches of one Fetch are held for a slow consumer.
   *
   * <p>Fails with {@link FetchException} where the offset is out of range or the partition unknown,
   * and with {@link dev.timebound.deadline.DeadlineExceededException} where the caller's deadline
   * passes, whose cause is what the store failed with last, if it did since its last answer. A
   * stall is waited out, and a failing store asked again, after 100 ms to 5 s.
   */
  public Flux<RecordBatch> tail(TopicPartition partition, long offset, Isolation isolation) {
    Objects.requireNonNull(partition, "partition");
    Objects.requireNonNull(isolation, "isolation");
    return Flux.defer(
        () -> new Tail(this, parts.settings().scheduler(), partition, offset, isolation).batches());
  }

  /**
   * Looks up offsets under a deadline of its own (10 s), each partition within its share: a stalled
   * one answers {@link ErrorCode#REQUEST_TIMED_OUT}, never that there is no such offset (FE-16).
   *
   * @param queries at least one, each partition once
   * @return one for each, in the order asked
   */
  public Mono<List<ListedOffset>> listOffsets(List<OffsetQuery> queries, Isolation isolation) {
    Objects.requireNonNull(isolation, "isolation");
    List<OffsetQuery> asked = List.copyOf(queries);
    if (asked.isEmpty()) {
      throw Settings.refused("queries", asked, "at least one");
    }
    Set<TopicPartition> seen = new HashSet<>();
    for (OffsetQuery query : asked) {
      if (!seen.add(query.partition())) {
        throw Settings.refused("queries", query.partition() + " twice", "each once");
      }
    }
    return Deadlines.defer(
        "list offsets",
        outer -> {
          Deadline deadline = within(outer, parts.settings().listOffsetsDeadline());
          return new OffsetLister(parts, asked, isolation, deadline).list();
        });
  }

  /**
   * One client's face of this fetcher: for it, reads that a request had to abandon may go on in the
   * background (FE-24). To be closed when the client goes.
   */
  public FetchClient client() {
    return new FetchClient(this, new BackgroundReads(parts.store(), parts.settings()));
  }

  /** Forgets which partitions stalled. Requests under way go on. */
  @Override
  public void close() {
    close.run();
  }

  Mono<FetchResponse> fetch(FetchRequest request, PartitionReads from) {
    Objects.requireNonNull(request, "request");
    return Deadlines.defer(
        "fetch", outer -> Mono.create(sink -> start(request, false, from, outer, new Whole(sink))));
  }

  Flux<PartitionData> fetchEach(FetchRequest request, PartitionReads from) {
    Objects.requireNonNull(request, "request");
    return Deadlines.deferMany(
        "fetch",
        outer -> Flux.create(sink -> start(request, true, from, outer, new OneByOne(sink))));
  }

  private void start(
      FetchRequest request, boolean each, PartitionReads from, Deadline outer, Answers answers) {
    FetchSettings settings = parts.settings();
    Duration wanted = request.maxWait().plus(settings.extraTime());
    Duration budget =
        wanted.compareTo(settings.maxReadDeadline()) > 0 ? settings.maxReadDeadline() : wanted;
    FetchRun run =
        new FetchRun(
            parts,
            from,
            request,
            each,
            within(outer, budget),
            Context.of(answers.context()),
            answers);
    answers.cancels(run);
    run.start();
  }

  private Deadline within(Deadline outer, Duration budget) {
    return outer.isNone()
        ? Deadline.after(budget, parts.settings().scheduler())
        : outer.within(budget);
  }

  private interface Answers extends FetchRun.Listener {
    ContextView context();

    void cancels(FetchRun run);
  }

  private record Whole(MonoSink<FetchResponse> sink) implements Answers {
    @Override
    public ContextView context() {
      return sink.contextView();
    }

    @Override
    public void cancels(FetchRun run) {
      sink.onDispose(run);
    }

    @Override
    public void answered(PartitionData data) {
      throw new IllegalStateException("asked for as a whole");
    }

    @Override
    public void done(List<PartitionData> all) {
      sink.success(new FetchResponse(all));
    }
  }

  private record OneByOne(FluxSink<PartitionData> sink) implements Answers {
    @Override
    public ContextView context() {
      return sink.contextView();
    }

    @Override
    public void cancels(FetchRun run) {
      sink.onDispose(run);
    }

    @Override
    public void answered(PartitionData data) {
      sink.next(data);
    }

    @Override
    public void done(List<PartitionData> rest) {
      rest.forEach(sink::next);
      sink.complete();
    }
  }
}
