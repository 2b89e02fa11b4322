package dev.timebound.fetch.segments;

import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.TopicPartition;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Exceptions;

/**
 * Writes one partition: appends in groups, each of them one write, and one fsync, where it fits.
 * What fails is taken off again, so that the log is as it was. One thread at a time, which may be
 * blocked.
 */
final class LogWriter {
  private static final Logger LOG = LoggerFactory.getLogger(SegmentStore.class);

  private final StoreParts parts;
  private final TopicPartition partition;
  private final Path directory;
  private final Consumer<LogView> publish;
  private final CRC32C crc = new CRC32C();

  /** As it was published last. */
  private LogView view;

  /** The view's last segment, or one after it that holds nothing yet; null where there is none. */
  private @Nullable ActiveSegment active;

  /** Why there can be no more appends. */
  private @Nullable SegmentStoreException closed;

  // what is staged: in the buffer, or in the file after what is published
  private final List<Append> staged = new ArrayList<>();
  private long next;
  private int end;
  private int written;
  private Transactions transactions = Transactions.NONE;

  LogWriter(
      StoreParts parts,
      TopicPartition partition,
      Path directory,
      Recovered found,
      Consumer<LogView> publish) {
    this.parts = parts;
    this.partition = partition;
    this.directory = directory;
    this.publish = publish;
    this.view = found.view();
    this.active = found.active();
  }

  /** Whether something was written since it was last forced to the disk. */
  boolean isDirty() {
    return active != null && active.isDirty();
  }

  /** Each is told how it ended. */
  void append(List<Append> group) {
    ByteBuffer buffer = parts.staging().take();
    try {
      stageNothing();
      for (Append each : group) {
        if (!each.isCancelled()) {
          append(each, buffer);
        }
      }
      try {
        commit(buffer);
      } catch (IOException e) {
        fail(e, buffer);
      }
    } finally {
      parts.staging().giveBack(buffer);
      if (active != null) {
        active.rest();
      }
    }
  }

  private void stageNothing() {
    staged.clear();
    next = view.offsets().highWatermark();
    end = active == null ? SegmentHeader.SIZE : active.length();
    written = end;
    transactions = view.transactions();
  }

  private void append(Append each, ByteBuffer buffer) {
    if (closed != null) {
      each.failed(closed);
      return;
    }
    ByteBuffer bytes;
    try {
      bytes = bytesOf(each);
    } catch (Throwable e) {
      Exceptions.throwIfJvmFatal(e);
      each.failed(e);
      return;
    }
    try {
      ActiveSegment to = room(Frame.HEADER + (long) bytes.remaining(), buffer);
      staged.add(each);
      stage(each, bytes, to, buffer);
    } catch (IOException e) {
      if (!staged.contains(each)) {
        staged.add(each);
      }
      fail(e, buffer);
    }
  }

  /** Asked for once. */
  private ByteBuffer bytesOf(Append each) {
    boolean marker = each.kind == Frame.Kind.COMMIT || each.kind == Frame.Kind.ABORT;
    if (marker && !transactions.isOpen(each.producerId)) {
      throw new IllegalStateException("no transaction of producer " + each.producerId + " is open");
    }
    ByteBuffer bytes = each.bytes.apply(next);
    if (!bytes.hasRemaining() || bytes.remaining() > Frame.MOST_BYTES) {
      throw SegmentStoreBuilder.refused("bytes", bytes.remaining(), "1 to " + Frame.MOST_BYTES);
    }
    return bytes.duplicate();
  }

  /** The segment that has room for a frame after what is staged. */
  private ActiveSegment room(long frame, ByteBuffer buffer) throws IOException {
    ActiveSegment last = active;
    if (last != null && last.fits(end, frame)) {
      return last;
    }
    commit(buffer);
    ActiveSegment made = ActiveSegment.create(parts, directory, view.offsets().highWatermark());
    if (last != null) {
      try {
        last.seal(summary(last), !parts.settings().fsync().isNever());
      } catch (IOException e) {
        made.discard();
        close(new SegmentStoreException(last.segment + " could not be sealed: " + e, e));
        throw e;
      }
      last.closeFile();
    }
    active = made;
    end = made.length();
    written = end;
    return made;
  }

  private IndexFile.Summary summary(ActiveSegment of) {
    return new IndexFile.Summary(
        of.length(),
        view.offsets().highWatermark(),
        of.latest(),
        List.copyOf(view.transactions().abortedSince(of.segment.base)),
        view.transactions().open());
  }

  private void stage(Append each, ByteBuffer bytes, ActiveSegment to, ByteBuffer buffer)
      throws IOException {
    if (buffer.remaining() < Frame.HEADER) {
      flush(to, buffer);
    }
    each.base = next;
    each.position = end;
    Frame.put(
        buffer, crc, bytes, next, each.records, each.kind, each.maxTimestamp, each.producerId);
    end += Frame.HEADER + bytes.remaining();
    next += each.records;
    transactions = transactions.after(each.kind, each.producerId, each.base, each.records);
    while (bytes.hasRemaining()) {
      if (!buffer.hasRemaining()) {
        flush(to, buffer);
      }
      int some = Math.min(bytes.remaining(), buffer.remaining());
      buffer.put(bytes.slice(bytes.position(), some));
      bytes.position(bytes.position() + some);
    }
  }

  private void flush(ActiveSegment to, ByteBuffer buffer) throws IOException {
    int length = buffer.flip().remaining();
    to.write(buffer, written);
    written += length;
    buffer.clear();
  }

  /** What is staged is written; readers see it; its appends return. */
  private void commit(ByteBuffer buffer) throws IOException {
    ActiveSegment to = active;
    if (staged.isEmpty() || to == null) {
      return;
    }
    flush(to, buffer);
    if (parts.settings().fsync().isEachAppend()) {
      force(to);
    }
    for (int i = 0; i < staged.size(); i++) {
      Append each = staged.get(i);
      int until = i + 1 < staged.size() ? staged.get(i + 1).position : end;
      to.published(each.base, each.position, until, each.maxTimestamp);
    }
    List<Append> done = List.copyOf(staged);
    staged.clear();
    see(with(to.segment), view.offsets().logStart(), next, transactions);
    done.forEach(Append::written);
  }

  private List<Segment> with(Segment last) {
    if (view.holds(last)) {
      return view.segments();
    }
    List<Segment> more = new ArrayList<>(view.segments());
    more.add(last);
    return List.copyOf(more);
  }

  private void see(List<Segment> segments, long start, long until, Transactions of) {
    view =
        new LogView(
            segments,
            Recovered.limit(segments, active),
            Offsets.of(start, until, Math.max(start, of.stable(until))),
            of);
    publish.accept(view);
  }

  /** What was not published is taken off again, and its appends fail. */
  private void fail(IOException cause, ByteBuffer buffer) {
    SegmentStoreException told =
        new SegmentStoreException(
            "append to "
                + partition
                + " failed: "
                + (active == null ? directory : active.segment)
                + " at "
                + (active == null ? 0 : active.length())
                + ": "
                + cause,
            cause);
    List<Append> failed = List.copyOf(staged);
    buffer.clear();
    if (active != null) {
      try {
        active.cutBack();
      } catch (IOException e) {
        told.addSuppressed(e);
        close(told);
      }
    }
    stageNothing();
    failed.forEach(each -> each.failed(told));
  }

  private void force(ActiveSegment segment) throws IOException {
    try {
      segment.force();
    } catch (IOException e) {
      // the system may forget what it could not write, and say nothing the next time
      close(new SegmentStoreException("fsync of " + segment.segment + " failed: " + e, e));
      throw e;
    }
  }

  private void close(SegmentStoreException why) {
    if (closed == null) {
      closed =
          new SegmentStoreException(
              partition + " takes no appends until it is opened anew: " + why.getMessage(), why);
      LOG.error("segments: {}", closed.getMessage());
    }
  }

  /** Forces what was written to the disk; a failure closes the partition for appends. */
  void sync() {
    ActiveSegment last = active;
    if (last == null || !last.isDirty() || closed != null) {
      return;
    }
    try {
      force(last);
    } catch (IOException e) {
      LOG.debug("segments: told of already", e);
    } finally {
      last.rest();
    }
  }

  /** Segments of which nothing is left are deleted; readers that have them read on. */
  void deleteBefore(long offset) throws IOException {
    Offsets now = view.offsets();
    if (offset > now.highWatermark()) {
      throw SegmentStoreBuilder.refused(
          "offset", offset, "<= high watermark " + now.highWatermark());
    }
    if (offset <= now.logStart()) {
      return;
    }
    StartFile.write(directory, offset);
    List<Segment> all = view.segments();
    int from = Math.max(0, Math.min(view.indexOf(offset), all.size() - 1));
    see(
        List.copyOf(all.subList(from, all.size())),
        offset,
        now.highWatermark(),
        view.transactions().since(offset));
    for (Segment gone : all.subList(0, from)) {
      parts.maps().forget(gone);
      try {
        parts.disk().delete(gone.indexFile);
        parts.disk().delete(gone.file);
      } catch (IOException e) {
        LOG.warn("segments: {} could not be deleted, and is when opened: {}", gone, e.toString());
      }
    }
  }

  /** The partition as it is opened fastest. No appends after that. */
  void end() {
    ActiveSegment last = active;
    boolean whole = closed == null;
    closed = new SegmentStoreException(partition + ": the store was closed", null);
    if (last == null) {
      return;
    }
    try {
      if (whole && view.holds(last.segment)) {
        last.seal(summary(last), true);
      }
    } catch (IOException e) {
      LOG.warn("segments: {} is opened more slowly the next time: {}", last.segment, e.toString());
    } finally {
      last.closeFile();
      active = null;
    }
  }
}
