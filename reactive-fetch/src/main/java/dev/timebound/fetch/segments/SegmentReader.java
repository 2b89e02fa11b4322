package dev.timebound.fetch.segments;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.SynchronousSink;

/**
 * One read of a partition. Batches are found, and brought into memory, a run at a time: whoever
 * takes them waits for no disk. The budget is looked at before each run. One thread at a time.
 */
final class SegmentReader {
  /** What is brought into memory before any of it is handed on: few system calls, a short wait. */
  static final int RUN_BYTES = 128 * 1024;

  private final StoreParts parts;
  private final Supplier<LogView> log;
  private final ReadSpec spec;
  private final Deadline budget;
  private final List<RecordBatch> run = new ArrayList<>();
  private int given;

  private long offset;
  private long bytes;
  private boolean over;

  /** Where the batch with the offset begins, where that is known. */
  private @Nullable Segment segment;

  private int position;

  SegmentReader(StoreParts parts, Supplier<LogView> log, ReadSpec spec, Deadline budget) {
    this.parts = parts;
    this.log = log;
    this.spec = spec;
    this.budget = budget;
    this.offset = spec.offset();
  }

  /** The next batch, or the end; may wait for the disk. */
  SegmentReader next(SynchronousSink<RecordBatch> sink) {
    try {
      if (given == run.size() && !fill()) {
        sink.complete();
        return this;
      }
    } catch (IOException | InternalError e) {
      // an InternalError is how a mapping tells that the disk did not give a page
      sink.error(new SegmentStoreException("read at " + offset + " failed: " + e, e));
      return this;
    }
    sink.next(run.get(given++));
    if (given == run.size() && isOver()) {
      sink.complete();
    }
    return this;
  }

  /** Whether the last batch is known to be it. */
  private boolean isOver() {
    return over || offset >= log.get().end(spec.isolation());
  }

  private boolean fill() throws IOException {
    run.clear();
    given = 0;
    while (run.isEmpty() && !over && !budget.isExpired()) {
      LogView view = log.get();
      if (offset < view.offsets().logStart()) {
        offset = view.offsets().logStart();
        segment = null;
      }
      if (offset >= view.end(spec.isolation())) {
        return false;
      }
      int index = view.indexOf(offset);
      Segment holding = view.segments().get(index);
      int limit = view.limit(index);
      try {
        take(view, holding, parts.maps().get(holding, limit), limit);
      } catch (NoSuchFileException e) {
        if (log.get().holds(holding)) {
          throw e;
        }
        // deleted in between: go on where the partition starts now
      }
    }
    return !run.isEmpty();
  }

  private void take(LogView view, Segment holding, Mapped mapped, int limit) throws IOException {
    int at = holding == segment ? position : mapped.positionOf(offset, limit);
    int loaded = at + (int) Math.min(limit - at, Math.min(RUN_BYTES, wanted()));
    parts.disk().load(mapped.file, mapped.bytes, at, loaded - at);
    int from = at;
    while (at < limit && (at == from || at < loaded)) {
      int end = mapped.end(at, limit);
      if (!admits(view, mapped, at, end)) {
        over = true;
        break;
      }
      run.add(batch(view, mapped, at, end));
      at = end;
    }
    if (at > loaded) {
      parts.disk().load(mapped.file, mapped.bytes, loaded, at - loaded);
    }
    segment = holding;
    position = at;
  }

  /** At most that many bytes of the file are handed on. */
  private long wanted() {
    return Frame.HEADER + Math.max(0, spec.maxBytes() - bytes);
  }

  private boolean admits(LogView view, Mapped mapped, int at, int end) {
    return Frame.last(mapped.bytes, at) < view.end(spec.isolation())
        && spec.admits(bytes, end - at - Frame.HEADER);
  }

  private RecordBatch batch(LogView view, Mapped mapped, int at, int end) {
    long base = Frame.base(mapped.bytes, at);
    long last = Frame.last(mapped.bytes, at);
    int size = end - at - Frame.HEADER;
    bytes += size;
    offset = last + 1;
    return new RecordBatch(
        mapped.bytes.slice(at + Frame.HEADER, size),
        base,
        last,
        Frame.records(mapped.bytes, at),
        Frame.maxTimestamp(mapped.bytes, at),
        spec.isolation() == Isolation.READ_COMMITTED
            ? view.transactions().within(base, last)
            : List.of());
  }

  /**
   * What can be read without waiting for the disk: what is mapped, and in memory at this moment. It
   * ends at the end of a segment.
   */
  List<RecordBatch> resident() {
    LogView view = log.get();
    offset = Math.max(offset, view.offsets().logStart());
    int index = view.indexOf(offset);
    if (index < 0 || offset >= view.end(spec.isolation())) {
      return List.of();
    }
    int limit = view.limit(index);
    Mapped mapped = parts.maps().ifMapped(view.segments().get(index), limit);
    if (mapped == null) {
      return List.of();
    }
    List<RecordBatch> found = new ArrayList<>();
    int at = mapped.floor(offset);
    while (at < limit && mapped.isResident(at, Frame.HEADER)) {
      int end = mapped.end(at, limit);
      if (Frame.last(mapped.bytes, at) >= offset) {
        if (!admits(view, mapped, at, end) || !mapped.isResident(at, end - at)) {
          break;
        }
        found.add(batch(view, mapped, at, end));
      }
      at = end;
    }
    return found;
  }
}
