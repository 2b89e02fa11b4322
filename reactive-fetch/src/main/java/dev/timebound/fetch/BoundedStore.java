package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * Admits so many calls at a time to a store that stands few, such as one with a pool of
 * connections; the others wait in the order in which they came.
 *
 * <p>The wait is the read's own time: the store behind it is handed the very deadline that the
 * caller gave, which the wait has shortened (FE-7). A read that is cancelled leaves the queue, or
 * gives its permit back (FE-22). One whose budget has passed on arrival waits for nothing: it is
 * handed on, for what the store holds in memory (FE-4). Which partitions exist needs no permit:
 * without it a whole request has nothing, and reads that stall hold them all. Thread-safe.
 */
public final class BoundedStore extends ForwardingStore {
  private final String name;
  private final Permits permits;
  private final PermitMeters meters;

  private BoundedStore(Builder builder) {
    super(builder.store);
    name = builder.name;
    permits = new Permits(name, builder.permits, builder.ofOne(), builder.maxWaiting);
    meters = PermitMeters.of(builder.meters, name, permits);
  }

  /**
   * @param permits calls at a time, {@code >= 1}
   */
  public static Builder builder(PartitionStore store, int permits) {
    return new Builder(store, permits);
  }

  /** Permits held now. */
  public int held() {
    return permits.held();
  }

  /** Calls that wait for a permit now. */
  public int waiting() {
    return permits.waiting();
  }

  @Override
  public Mono<Offsets> offsets(TopicPartition partition) {
    return admitted(partition, () -> super.offsets(partition));
  }

  @Override
  public Mono<Offsets> authoritativeOffsets(TopicPartition partition) {
    return admitted(partition, () -> super.authoritativeOffsets(partition));
  }

  @Override
  public Mono<TimestampOffset> offsetFor(
      TopicPartition partition, long timestamp, Isolation isolation) {
    return admitted(partition, () -> super.offsetFor(partition, timestamp, isolation));
  }

  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    return Flux.deferContextual(
        context ->
            budget.isExpired()
                ? super.read(partition, spec, budget)
                : admitted(partition, budget, context, () -> super.read(partition, spec, budget)));
  }

  /**
   * A call of another kind, such as an append, under a permit like all others: it is subscribed
   * once its turn has come, and fails where the deadline in the Context passes before. What is
   * bounded so apart from reads takes a store, and permits, of its own.
   *
   * @param partition whose permits it counts for
   */
  public <T> Mono<T> admit(TopicPartition partition, Mono<T> call) {
    Objects.requireNonNull(partition, "partition");
    return admitted(partition, () -> call);
  }

  private <T> Mono<T> admitted(TopicPartition of, Supplier<Mono<T>> call) {
    return Mono.deferContextual(
        context -> admitted(of, Deadlines.current(context), context, call::get).singleOrEmpty());
  }

  private <T> Flux<T> admitted(
      TopicPartition of,
      Deadline waitsUntil,
      ContextView context,
      Supplier<? extends Publisher<T>> call) {
    Wait wait = new Wait(of, waitsUntil, ReadTrace.in(context));
    return wait.ticket
        .acquire()
        .transform(Deadlines.of(waitsUntil, name + " permit"))
        .doOnSuccess(granted -> wait.over(true))
        .doOnError(refused -> wait.over(false))
        .doOnCancel(() -> wait.over(false))
        .thenMany(Flux.defer(call::get))
        .doFinally(any -> wait.ticket.close());
  }

  private final class Wait {
    private final Permits.Ticket ticket;
    private final Deadline until;
    private final @Nullable ReadTrace trace;
    private final long since;

    Wait(TopicPartition of, Deadline until, @Nullable ReadTrace trace) {
      this.ticket = permits.ticket(of);
      this.until = until;
      this.trace = trace;
      this.since = until.scheduler().now(TimeUnit.NANOSECONDS);
      if (trace != null) {
        trace.waiting(true);
      }
    }

    /** Before what follows the permit is begun. */
    void over(boolean granted) {
      if (trace != null && granted) {
        trace.waiting(false);
      }
      meters.waited(granted, until.scheduler().now(TimeUnit.NANOSECONDS) - since);
    }
  }

  /** Not thread-safe. */
  public static final class Builder {
    private final PartitionStore store;
    private final int permits;
    private int maxWaiting = 10_000;
    private int perPartition;
    private String name = "store";
    private @Nullable MeterRegistry meters;

    private Builder(PartitionStore store, int permits) {
      this.store = Objects.requireNonNull(store, "store");
      this.permits = Settings.atLeast("permits", permits, 1);
    }

    /** Calls that may wait, {@code >= 0}; one more fails at once. Default 10 000. */
    public Builder maxWaiting(int calls) {
      maxWaiting = Settings.atLeast("maxWaiting", calls, 0);
      return this;
    }

    /**
     * Of the permits, how many calls on one partition may hold at a time, {@code >= 1}: one that
     * stalls does not take them all, however many clients ask for it. Default: half of them,
     * rounded up.
     */
    public Builder maxPerPartition(int calls) {
      perPartition = Settings.atLeast("maxPerPartition", calls, 1);
      return this;
    }

    private int ofOne() {
      return perPartition > 0 ? perPartition : (permits + 1) / 2;
    }

    /** In meters and errors. Default {@code store}. */
    public Builder name(String store) {
      name = Settings.name("name", store);
      return this;
    }

    /** Default: nowhere. */
    public Builder meters(MeterRegistry registry) {
      meters = Objects.requireNonNull(registry, "meters");
      return this;
    }

    public BoundedStore build() {
      return new BoundedStore(this);
    }
  }
}
