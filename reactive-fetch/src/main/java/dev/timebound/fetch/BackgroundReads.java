package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.ConnectableFlux;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Scheduler;
import reactor.util.context.Context;

/**
 * The reads of one client that outlive the request that began them (FE-24): at most one of each
 * partition. A turn that cancels only leaves its read; the client's next turn on that partition
 * finds what has come by then, and what still comes. A turn that the kept read cannot serve
 * replaces it, unless another turn is at it: then it reads past it.
 */
final class BackgroundReads implements PartitionReads, AutoCloseable {
  private static final int RETIRED = -1;

  private final PartitionStore store;
  private final Duration time;
  private final long bytes;
  private final Scheduler scheduler;
  private final Map<TopicPartition, Kept> kept = new ConcurrentHashMap<>();
  private volatile boolean closed;

  BackgroundReads(PartitionStore store, FetchSettings settings) {
    this.store = store;
    this.time = settings.backgroundTime();
    this.bytes = settings.backgroundBytes();
    this.scheduler = settings.scheduler();
  }

  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    if (closed || !store.finishesInBackground()) {
      return store.read(partition, spec, budget);
    }
    return Flux.deferContextual(
        context -> {
          Kept read = kept(partition, spec, budget);
          if (read == null) {
            return store.read(partition, spec, budget);
          }
          if (closed) {
            read.end(); // the client went meanwhile
          }
          return read.from(Context.of(context));
        });
  }

  /**
   * One that serves this turn, which is counted as its user; null where the one that is kept serves
   * another turn now.
   */
  private @Nullable Kept kept(TopicPartition partition, ReadSpec spec, Deadline budget) {
    while (true) {
      Kept before = kept.get(partition);
      if (before == null) {
        Kept made = new Kept(partition, spec, budget);
        if (kept.putIfAbsent(partition, made) == null) {
          return made;
        }
      } else if (before.serves(spec) && before.use()) {
        return before;
      } else if (before.retire()) {
        before.end();
      } else {
        return null;
      }
    }
  }

  @Override
  public boolean isAtHand(TopicPartition partition) {
    Kept read = kept.get(partition);
    return read != null && read.upTo > read.spec.offset();
  }

  @Override
  public void left(TopicPartition partition) {
    Kept read = kept.get(partition);
    if (read != null && read.retire()) {
      read.end();
    }
  }

  int size() {
    return kept.size();
  }

  @Override
  public void close() {
    closed = true;
    kept.values().forEach(Kept::end);
  }

  /** One read, its batches kept until they were taken, or its time is over. */
  private final class Kept {
    private final TopicPartition partition;
    private final ReadSpec spec;
    private final ConnectableFlux<RecordBatch> batches;
    private final Disposable.Composite parts = Disposables.composite();
    private final AtomicBoolean started = new AtomicBoolean();

    /** Turns that are at it; the first one made it. */
    private final AtomicInteger users = new AtomicInteger(1);

    private volatile Context context = Context.empty();
    private volatile long upTo;
    private volatile boolean complete;
    private long size;

    Kept(TopicPartition partition, ReadSpec spec, Deadline budget) {
      this.partition = partition;
      this.spec = spec;
      this.upTo = spec.offset();
      this.batches =
          Flux.defer(() -> store.read(partition, spec, budget))
              .contextWrite(of -> context)
              .takeUntil(batch -> (size += batch.sizeInBytes()) >= bytes)
              .doOnNext(this::came) // of what is kept: a store may give more after the last one
              .doOnTerminate(() -> complete = true)
              .replay();
    }

    private void came(RecordBatch batch) {
      upTo = batch.nextOffset();
    }

    /** Whether it has, or may still bring, what is asked for. */
    boolean serves(ReadSpec asked) {
      boolean within = asked.offset() >= spec.offset() && asked.offset() <= upTo;
      return within
          && asked.isolation() == spec.isolation()
          && !(complete && asked.offset() == upTo);
    }

    /** Counts one more user; false where nobody may use it any more. */
    boolean use() {
      return users.getAndUpdate(n -> n < 0 ? n : n + 1) >= 0;
    }

    /** Nobody may use it from now on; false where somebody does. */
    boolean retire() {
      int before = users.getAndUpdate(n -> n <= 0 ? RETIRED : n);
      return before <= 0;
    }

    /** What it brings, for a turn that was counted. */
    Flux<RecordBatch> from(Context first) {
      Flux<RecordBatch> all =
          batches
              .doOnTerminate(this::end)
              .doFinally(any -> users.decrementAndGet())
              .onErrorResume(CancellationException.class, ended -> Flux.empty());
      if (started.compareAndSet(false, true)) {
        // Its own deadline in place of that of the request that began it.
        context = Deadlines.put(first.delete(Deadline.class), Deadline.after(time, scheduler));
        return all.doOnSubscribe(subscribed -> start());
      }
      return all;
    }

    private void start() {
      parts.add(batches.connect());
      parts.add(scheduler.schedule(this::end, time.toNanos(), TimeUnit.NANOSECONDS));
    }

    /** Taken whole, out of time, or without its client. */
    void end() {
      kept.remove(partition, this);
      parts.dispose();
    }
  }
}
