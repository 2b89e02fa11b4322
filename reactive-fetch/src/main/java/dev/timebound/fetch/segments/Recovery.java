package dev.timebound.fetch.segments;

import dev.timebound.fetch.Offsets;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Opens one partition's directory. A sealed segment whose index file speaks for the whole of it is
 * taken at its word; any other is read, each batch checked. What follows the last whole batch is
 * cut: it is an append that never returned, or, by the fsync that was chosen, one that was lost.
 * Damage anywhere else is not cut unless the store is told to. Blocks.
 */
final class Recovery {
  private static final Logger LOG = LoggerFactory.getLogger(SegmentStore.class);

  private final StoreParts parts;
  private final Path directory;
  private final List<Segment> segments = new ArrayList<>();
  private Transactions transactions = Transactions.NONE;
  private long next;

  /** Of the last one of the segments. */
  private int length = SegmentHeader.SIZE;

  private long latest = -1;
  private @Nullable SparseIndex index;

  private Recovery(StoreParts parts, Path directory) {
    this.parts = parts;
    this.directory = directory;
  }

  /**
   * @throws SegmentStoreException where something else than a partition is there
   */
  static Recovered open(StoreParts parts, Path directory) throws IOException {
    return new Recovery(parts, directory).open();
  }

  private Recovered open() throws IOException {
    long start = StartFile.read(directory);
    List<Segment> found = found(start);
    next = found.isEmpty() ? start : found.get(0).base;
    for (int i = 0; i < found.size(); i++) {
      if (!take(found, i)) {
        cut(found.subList(i, found.size()));
        break;
      }
    }
    if (next < start) {
      LOG.warn("segments: {} ends at {}, before its start {}: emptied", directory, next, start);
      cut(segments);
      segments.clear();
      next = start;
    }
    return recovered(Math.max(start, segments.isEmpty() ? next : segments.get(0).base));
  }

  private Recovered recovered(long start) throws IOException {
    ActiveSegment active = null;
    if (!segments.isEmpty()) {
      Segment last = segments.get(segments.size() - 1);
      last.begin(index == null ? indexOf(last) : index);
      active = ActiveSegment.found(parts, last, length, latest);
      if (length == SegmentHeader.SIZE) {
        segments.remove(last);
      }
    }
    List<Segment> shown = List.copyOf(segments);
    Transactions since = transactions.since(start);
    Offsets offsets = Offsets.of(start, next, Math.max(start, since.stable(next)));
    return new Recovered(
        new LogView(shown, Recovered.limit(shown, active), offsets, since), active);
  }

  private SparseIndex indexOf(Segment sealed) throws IOException {
    int every = parts.settings().indexEvery();
    SparseIndex kept = IndexFile.index(sealed, every);
    return kept != null
        ? kept
        : Mapped.indexed(new Mapped(sealed.file, parts.disk().map(sealed.file)), length, every);
  }

  /** The partition's segments, without those of which nothing is left. */
  private List<Segment> found(long start) throws IOException {
    List<Path> indexes = new ArrayList<>();
    List<Segment> found = new ArrayList<>();
    try (Stream<Path> files = Files.list(directory)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        String name = file.getFileName().toString();
        long base = Segment.baseOf(name);
        if (base >= 0) {
          found.add(new Segment(directory, base));
        } else if (Segment.isIndex(name)) {
          indexes.add(file);
        } else if (name.endsWith(".new")) {
          parts.disk().delete(file);
        } else if (!name.equals(StartFile.NAME)) {
          throw SegmentStoreException.at(
              file, 0, "a file of this name", "segments, their indexes, and " + StartFile.NAME);
        }
      }
    }
    found.sort(Comparator.comparingLong(segment -> segment.base));
    while (found.size() > 1 && found.get(1).base <= start) {
      parts.disk().delete(found.remove(0).file);
    }
    for (Path each : indexes) {
      if (found.stream().noneMatch(segment -> segment.indexFile.equals(each))) {
        parts.disk().delete(each);
      }
    }
    return found;
  }

  /** False where the log ends before it, and it is to go with all that follow. */
  private boolean take(List<Segment> found, int i) throws IOException {
    Segment segment = found.get(i);
    boolean last = i == found.size() - 1;
    ByteBuffer bytes = parts.disk().map(segment.file);
    if (SegmentHeader.isUnwritten(bytes)) {
      // made, and the process or the machine died before a batch was in it
      return !last && refused(segment, 0, "no header (expected: one, as segments follow)");
    }
    SegmentHeader.Fault fault = SegmentHeader.fault(bytes, segment.base);
    if (fault != null) {
      return damaged(segment, last, bytes, fault);
    }
    if (segment.base != next) {
      // of an empty one nothing is lost: the one before it was not yet forced to the disk
      Walk walk = Walk.over(bytes, segment.base, transactions, 1);
      return !(last && walk.isEmpty())
          && refused(
              segment,
              SegmentHeader.BASE_AT,
              "base offset "
                  + segment.base
                  + " (expected: "
                  + next
                  + ", where the one before ends)");
    }
    seal();
    segments.add(segment);
    IndexFile.@Nullable Summary summary = IndexFile.summary(segment);
    if (summary != null && summary.length() == bytes.limit()) {
      trust(summary);
      return true;
    }
    return walk(found, i, bytes);
  }

  /**
   * A header of which only a part was written goes as any other end of the log does, where nothing
   * behind it can be read, and no index says that there was something. One of another version is
   * not ours to judge, unless what is behind it is of this one.
   *
   * @return false, where the log is to be cut there
   */
  private boolean damaged(
      Segment segment, boolean last, ByteBuffer bytes, SegmentHeader.Fault fault) {
    boolean empty = Walk.over(bytes, segment.base, transactions, 1).isEmpty();
    if (empty && fault.isVersion()) {
      throw refusal(segment, fault.at(), fault.what());
    }
    if (empty && last && IndexFile.summary(segment) == null) {
      LOG.warn(
          "segments: {} at {}: {}, and no whole batch behind it; cut there, the next offset is {}",
          segment,
          fault.at(),
          fault.what(),
          next);
      return false;
    }
    return refused(segment, fault.at(), fault.what());
  }

  private void seal() {
    if (!segments.isEmpty()) {
      segments.get(segments.size() - 1).seal(length, latest);
    }
  }

  private void trust(IndexFile.Summary summary) {
    List<Transactions.Aborted> aborted = new ArrayList<>(transactions.aborted());
    aborted.addAll(summary.aborted());
    transactions = new Transactions(summary.open(), aborted);
    next = summary.next();
    latest = summary.latest();
    length = summary.length();
    index = null;
  }

  private boolean walk(List<Segment> found, int i, ByteBuffer bytes) throws IOException {
    Segment segment = found.get(i);
    Walk walk = Walk.over(bytes, segment.base, transactions, parts.settings().indexEvery());
    boolean more = i + 1 < found.size();
    boolean end = !more || found.get(i + 1).base == walk.next || endsHere(found, i + 1, walk);
    if (!end) {
      refused(
          segment,
          walk.position,
          (walk.fault == null ? "the file's end" : walk.fault)
              + "; the batch "
              + walk.next
              + " is missing, and segments follow");
    }
    if (walk.position < bytes.limit()) {
      tell(segment, bytes, walk);
      try (FileChannel channel = parts.disk().open(segment.file)) {
        parts.disk().truncate(channel, walk.position);
        if (!parts.settings().fsync().isNever()) {
          parts.disk().force(channel);
        }
      }
    }
    transactions = walk.transactions;
    next = walk.next;
    latest = walk.latest;
    length = walk.position;
    index = walk.index;
    return true;
  }

  /** Whether what follows is one segment that nothing was ever written to. */
  private boolean endsHere(List<Segment> found, int following, Walk walk) throws IOException {
    if (following != found.size() - 1 || walk.fault == null) {
      return false;
    }
    Segment last = found.get(following);
    ByteBuffer bytes = parts.disk().map(last.file);
    return SegmentHeader.isUnwritten(bytes)
        || Walk.over(bytes, last.base, transactions, 1).isEmpty();
  }

  /** A hole is what a segment ends with where the process died; anything else was being written. */
  private static void tell(Segment segment, ByteBuffer bytes, Walk walk) {
    int until = Math.min(bytes.limit(), walk.position + Frame.HEADER);
    for (int at = walk.position; at < until; at++) {
      if (bytes.get(at) != 0) {
        LOG.warn(
            "segments: {} at {}: {}; cut there, its next offset is {}",
            segment,
            walk.position,
            walk.fault,
            walk.next);
        return;
      }
    }
  }

  /** False where the log is to be cut there instead. */
  private boolean refused(Segment segment, long at, String what) {
    SegmentStoreException refusal = refusal(segment, at, what);
    if (!parts.settings().cutAtFault()) {
      throw refusal;
    }
    LOG.warn("segments: {}; cut there, with all that follows", refusal.getMessage());
    return false;
  }

  private static SegmentStoreException refusal(Segment segment, long at, String what) {
    return new SegmentStoreException(segment.file + " at " + at + ": " + what, null);
  }

  private void cut(List<Segment> gone) throws IOException {
    for (Segment each : gone) {
      parts.disk().delete(each.indexFile);
      parts.disk().delete(each.file);
    }
  }
}
