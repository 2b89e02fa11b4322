package dev.timebound.fetch;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.LongFunction;
import reactor.core.Disposable;

/**
 * One partition in memory. Appends are serialised; readers run beside them without a lock, up to
 * the end that was there when they began.
 */
final class MemoryLog {
  /** An aborted transaction, from its first record to its marker. */
  private record Aborted(AbortedTransaction transaction, long lastOffset) {}

  private final ConcurrentSkipListMap<Long, RecordBatch> byLastOffset =
      new ConcurrentSkipListMap<>();
  private final List<Aborted> aborted = new CopyOnWriteArrayList<>();
  private final List<Runnable> listeners = new CopyOnWriteArrayList<>();

  /** The first offset of each producer's open transaction; guarded by this. */
  private final Map<Long, Long> open = new LinkedHashMap<>();

  /** One word for readers, written by appenders. */
  private volatile Offsets offsets = Offsets.of(0, 0, 0);

  Offsets offsets() {
    return offsets;
  }

  /** The base offset. */
  long append(LongFunction<ByteBuffer> bytes, int records, long maxTimestamp) {
    long base;
    synchronized (this) {
      base = put(bytes, records, maxTimestamp);
      publish();
    }
    wake();
    return base;
  }

  long appendOf(long producerId, LongFunction<ByteBuffer> bytes, int records, long maxTimestamp) {
    long base;
    synchronized (this) {
      base = put(bytes, records, maxTimestamp);
      open.putIfAbsent(producerId, base);
      publish();
    }
    wake();
    return base;
  }

  /** The marker's offset. */
  long endOf(long producerId, boolean commit, LongFunction<ByteBuffer> marker, long timestamp) {
    long at;
    synchronized (this) {
      Long first = open.get(producerId);
      if (first == null) {
        throw new IllegalStateException("no transaction of producer " + producerId + " is open");
      }
      at = put(marker, 1, timestamp);
      open.remove(producerId);
      if (!commit) {
        aborted.add(new Aborted(new AbortedTransaction(producerId, first), at));
      }
      publish();
    }
    wake();
    return at;
  }

  void deleteBefore(long offset) {
    synchronized (this) {
      Offsets now = offsets;
      if (offset > now.highWatermark()) {
        throw Settings.refused("offset", offset, "<= high watermark " + now.highWatermark());
      }
      if (offset <= now.logStart()) {
        return;
      }
      offsets = Offsets.of(offset, now.highWatermark(), Math.max(offset, now.lastStable()));
      byLastOffset.headMap(offset, false).clear();
      aborted.removeIf(transaction -> transaction.lastOffset() < offset);
    }
  }

  List<RecordBatch> read(ReadSpec spec) {
    long end = offsets.end(spec.isolation());
    boolean committed = spec.isolation() == Isolation.READ_COMMITTED;
    List<RecordBatch> batches = new ArrayList<>();
    long bytes = 0;
    Iterator<RecordBatch> from = byLastOffset.tailMap(spec.offset(), true).values().iterator();
    while (from.hasNext()) {
      RecordBatch batch = from.next();
      if (batch.lastOffset() >= end || !spec.admits(bytes, batch.sizeInBytes())) {
        break;
      }
      bytes += batch.sizeInBytes();
      batches.add(committed ? withAborted(batch) : batch);
    }
    return batches;
  }

  TimestampOffset offsetFor(long timestamp, Isolation isolation) {
    Offsets now = offsets;
    for (RecordBatch batch : byLastOffset.tailMap(now.logStart(), true).values()) {
      if (batch.lastOffset() >= now.end(isolation)) {
        break;
      }
      if (batch.maxTimestamp() >= timestamp) {
        // Within the batch nothing is known: a reader that begins at it misses none.
        return new TimestampOffset(
            Math.max(batch.baseOffset(), now.logStart()), batch.maxTimestamp());
      }
    }
    return TimestampOffset.NONE;
  }

  Disposable listen(Runnable wake) {
    listeners.add(wake);
    return () -> listeners.remove(wake);
  }

  int listeners() {
    return listeners.size();
  }

  private long put(LongFunction<ByteBuffer> bytes, int records, long maxTimestamp) {
    long base = offsets.highWatermark();
    long last = base + Settings.atLeast("records", records, 1) - 1;
    byLastOffset.put(last, new RecordBatch(bytes.apply(base), base, last, records, maxTimestamp));
    return base;
  }

  private void publish() {
    Offsets before = offsets;
    long end = byLastOffset.lastKey() + 1;
    long stable = open.values().stream().mapToLong(Long::longValue).min().orElse(end);
    offsets = Offsets.of(before.logStart(), end, Math.max(before.logStart(), stable));
  }

  private void wake() {
    listeners.forEach(Runnable::run);
  }

  private RecordBatch withAborted(RecordBatch batch) {
    if (aborted.isEmpty()) {
      return batch;
    }
    List<AbortedTransaction> within = new ArrayList<>(0);
    for (Aborted each : aborted) {
      if (each.transaction().firstOffset() <= batch.lastOffset()
          && each.lastOffset() >= batch.baseOffset()) {
        within.add(each.transaction());
      }
    }
    return within.isEmpty() ? batch : batch.withAborted(within);
  }
}
