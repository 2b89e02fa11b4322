package dev.timebound.fetch.segments;

import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.util.concurrent.Queues;

/**
 * One partition. What changes it waits in a queue, and is done in turns on the store's threads, one
 * at a time; nobody waits for a lock. Readers take the view that was published last. Thread-safe.
 */
final class SegmentLog {
  private static final Logger LOG = LoggerFactory.getLogger(SegmentStore.class);

  /** Of one turn, after which others have theirs. */
  private static final int MOST_AT_ONCE = 256;

  /** What is done between appends. */
  private record Step(Callable<?> work, MonoSink<Void> sink) {
    void run() {
      try {
        work.call();
        sink.success();
      } catch (Throwable e) {
        sink.error(e);
      }
    }
  }

  private final StoreParts parts;
  private final TopicPartition partition;
  private final LogWriter writer;
  private final List<Runnable> listeners = new CopyOnWriteArrayList<>();
  private final Queue<Object> queue = Queues.unboundedMultiproducer().get();
  private final AtomicInteger wip = new AtomicInteger();
  private final AtomicInteger waiting = new AtomicInteger();
  private volatile LogView view;

  /** An fsync is on its way; of whoever has the turn. */
  private boolean syncing;

  SegmentLog(StoreParts parts, TopicPartition partition, Path directory, Recovered found) {
    this.parts = parts;
    this.partition = partition;
    this.view = found.view();
    this.writer = new LogWriter(parts, partition, directory, found, this::publish);
  }

  LogView view() {
    return view;
  }

  /** Its base offset. A cancel stops it only where its turn has not come. */
  Mono<Long> append(
      Frame.Kind kind,
      long producerId,
      LongFunction<ByteBuffer> bytes,
      int records,
      long maxTimestamp) {
    return Mono.create(
        sink -> {
          if (waiting.incrementAndGet() > parts.settings().maxWaiting()) {
            waiting.decrementAndGet();
            sink.error(
                new IllegalStateException(
                    partition + ": " + parts.settings().maxWaiting() + " appends wait already"));
            return;
          }
          long since = parts.io().now(TimeUnit.NANOSECONDS);
          Append.Told told =
              written ->
                  parts.meters().appended(written, parts.io().now(TimeUnit.NANOSECONDS) - since);
          offer(new Append(kind, producerId, bytes, records, maxTimestamp, sink, told));
        });
  }

  Mono<Void> deleteBefore(long offset) {
    return step(
        () -> {
          writer.deleteBefore(offset);
          return true;
        });
  }

  /** No appends after that. */
  Mono<Void> end() {
    return step(
        () -> {
          writer.end();
          return true;
        });
  }

  private Mono<Void> step(Callable<?> work) {
    return Mono.create(sink -> offer(new Step(work, sink)));
  }

  Disposable listen(Runnable wake) {
    listeners.add(wake);
    return () -> listeners.remove(wake);
  }

  int waiting() {
    return waiting.get();
  }

  int listeners() {
    return listeners.size();
  }

  private void offer(Object what) {
    queue.offer(what);
    if (wip.getAndIncrement() == 0) {
      schedule();
    }
  }

  private void schedule() {
    try {
      parts.background().run(this::turn);
    } catch (RuntimeException e) {
      // the store's threads are gone; whoever comes now fails alike
      SegmentStoreException told =
          new SegmentStoreException(partition + ": the store was closed", e);
      int missed = wip.get();
      do {
        Object each;
        while ((each = queue.poll()) != null) {
          if (each instanceof Append append) {
            waiting.decrementAndGet();
            append.failed(told);
          } else {
            ((Step) each).sink.error(told);
          }
        }
        missed = wip.addAndGet(-missed);
      } while (missed != 0);
    }
  }

  private void turn() {
    int missed = wip.get();
    List<Append> group = new ArrayList<>();
    Object each;
    int taken = 0;
    while (taken++ < MOST_AT_ONCE && (each = queue.poll()) != null) {
      if (each instanceof Append append) {
        waiting.decrementAndGet();
        group.add(append);
      } else {
        write(group);
        ((Step) each).run();
      }
    }
    write(group);
    syncLater();
    if (!queue.isEmpty() || wip.addAndGet(-missed) != 0) {
      schedule();
    }
  }

  private void write(List<Append> group) {
    if (group.isEmpty()) {
      return;
    }
    try {
      writer.append(group);
    } catch (Throwable e) {
      // whatever it was, the others' turns come
      LOG.error("segments: an append to {} failed", partition, e);
      group.forEach(append -> append.failed(e));
    }
    group.clear();
  }

  private void syncLater() {
    Fsync fsync = parts.settings().fsync();
    if (syncing || fsync.interval().isZero() || !writer.isDirty()) {
      return;
    }
    syncing = true;
    Callable<Boolean> sync =
        () -> {
          syncing = false;
          writer.sync();
          return true;
        };
    parts
        .io()
        .schedule(
            () -> step(sync).subscribe(done -> {}, e -> LOG.debug("segments: no sync", e)),
            fsync.interval().toNanos(),
            TimeUnit.NANOSECONDS);
  }

  private void publish(LogView now) {
    LogView before = view;
    view = now;
    if (now.offsets().highWatermark() != before.offsets().highWatermark()
        || now.offsets().lastStable() != before.offsets().lastStable()) {
      listeners.forEach(Runnable::run);
    }
  }

  /** As exact as batches are; may wait for the disk. */
  TimestampOffset offsetFor(long timestamp, Isolation isolation) throws IOException {
    LogView now = view;
    int first = Math.max(0, now.indexOf(now.offsets().logStart()));
    for (int i = first; i < now.segments().size(); i++) {
      Segment segment = now.segments().get(i);
      boolean last = i == now.segments().size() - 1;
      try {
        TimestampOffset found =
            last || segment.maxTimestamp() >= timestamp
                ? offsetIn(now, i, timestamp, isolation)
                : null;
        if (found != null) {
          return found;
        }
      } catch (NoSuchFileException e) {
        if (view.holds(segment)) {
          throw e;
        }
        return offsetFor(timestamp, isolation);
      }
    }
    return TimestampOffset.NONE;
  }

  /** Null where none of the segment's batches has it. */
  private @Nullable TimestampOffset offsetIn(
      LogView now, int index, long timestamp, Isolation isolation) throws IOException {
    long start = now.offsets().logStart();
    int limit = now.limit(index);
    Mapped mapped = parts.maps().get(now.segments().get(index), limit);
    int at = Math.max(mapped.floorOfTime(timestamp), mapped.floor(start));
    while (at < limit) {
      int end = mapped.end(at, limit);
      long last = Frame.last(mapped.bytes, at);
      if (last >= now.end(isolation)) {
        return TimestampOffset.NONE;
      }
      long latest = Frame.maxTimestamp(mapped.bytes, at);
      if (last >= start && latest >= timestamp) {
        // within the batch nothing is known: a reader that begins at it misses none
        return new TimestampOffset(Math.max(Frame.base(mapped.bytes, at), start), latest);
      }
      at = end;
    }
    return null;
  }
}
