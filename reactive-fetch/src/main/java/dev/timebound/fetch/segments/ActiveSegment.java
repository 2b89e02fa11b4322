package dev.timebound.fetch.segments;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The segment that a partition's appends go to. Its file is as long as a full one from the start,
 * its end a hole: one mapping then serves its readers until it is sealed. One thread at a time,
 * which may be blocked.
 */
final class ActiveSegment {
  private static final Logger LOG = LoggerFactory.getLogger(SegmentStore.class);

  private final StoreParts parts;
  final Segment segment;

  /** Where the last batch that was published ends. */
  private int length;

  /** The latest time of what was published. */
  private long latest;

  private @Nullable FileChannel channel;
  private boolean begun;
  private boolean extended;
  private boolean dirty;

  private ActiveSegment(StoreParts parts, Segment segment, int length, long latest) {
    this.parts = parts;
    this.segment = segment;
    this.length = length;
    this.latest = latest;
  }

  /** One that was there when the store was opened. */
  static ActiveSegment found(StoreParts parts, Segment segment, int length, long latest) {
    return new ActiveSegment(parts, segment, length, latest);
  }

  static ActiveSegment create(StoreParts parts, Path directory, long base) throws IOException {
    Segment segment = new Segment(directory, base);
    segment.begin(new SparseIndex(parts.settings().indexEvery()));
    ActiveSegment made = new ActiveSegment(parts, segment, SegmentHeader.SIZE, -1);
    FileChannel channel = parts.disk().create(segment.file);
    made.channel = channel;
    made.begun = true;
    try {
      parts.disk().write(channel, SegmentHeader.of(base), 0);
      if (!parts.settings().fsync().isNever()) {
        parts.disk().forceDirectory(directory);
      }
      return made;
    } catch (IOException e) {
      made.discard();
      throw e;
    }
  }

  int length() {
    return length;
  }

  long latest() {
    return latest;
  }

  boolean isDirty() {
    return dirty;
  }

  /** Whether a frame may follow there. One that is alone may be of any size. */
  boolean fits(int end, long frame) {
    return end == SegmentHeader.SIZE || end + frame <= parts.settings().segmentBytes();
  }

  void write(ByteBuffer bytes, int at) throws IOException {
    FileChannel to = channel();
    extend(to);
    parts.disk().write(to, bytes, at);
    dirty = true;
  }

  /** It has been written, and forced where it has to be: from now on it is part of the log. */
  void published(long base, int position, int end, long maxTimestamp) {
    SparseIndex index = segment.live();
    if (index != null) {
      index.add(base, position, latest);
    }
    latest = Math.max(latest, maxTimestamp);
    length = end;
  }

  void force() throws IOException {
    if (dirty) {
      parts.disk().force(channel());
      dirty = false;
    }
  }

  /** Takes off what was not published. */
  void cutBack() throws IOException {
    extended = false;
    parts.disk().truncate(channel(), length);
  }

  /**
   * Nothing is appended any more.
   *
   * @param force what is sealed is safe on the disk, and its index is written
   */
  void seal(IndexFile.Summary summary, boolean force) throws IOException {
    parts.disk().truncate(channel(), length);
    if (force) {
      force();
    }
    SparseIndex index = segment.live();
    segment.seal(length, latest);
    if (index == null) {
      return;
    }
    int entries = index.size();
    if (force) {
      writeIndex(summary, index, entries);
    } else {
      parts.background().run(() -> forceAndIndex(summary, index, entries));
    }
  }

  /** An index speaks for what is on the disk. */
  private void forceAndIndex(IndexFile.Summary summary, SparseIndex index, int entries) {
    try (FileChannel sealed = parts.disk().open(segment.file)) {
      parts.disk().force(sealed);
      writeIndex(summary, index, entries);
    } catch (IOException e) {
      LOG.warn("segments: {} has no index: {}", segment, e.toString());
    }
  }

  /** Without it the store is opened more slowly. */
  private void writeIndex(IndexFile.Summary summary, SparseIndex index, int entries) {
    try {
      IndexFile.write(segment, summary, index, entries);
    } catch (IOException e) {
      LOG.warn("segments: {} has no index: {}", segment, e.toString());
    }
  }

  /** It is no part of the log. */
  void discard() {
    closeFile();
    try {
      parts.disk().delete(segment.file);
    } catch (IOException e) {
      LOG.warn("segments: {} could not be deleted: {}", segment, e.toString());
    }
  }

  /** Until it is used again its file may be closed. */
  void rest() {
    FileChannel open = channel;
    if (open != null) {
      channel = null;
      parts.channels().giveBack(segment, open);
    }
  }

  void closeFile() {
    rest();
    parts.channels().forget(segment);
  }

  private FileChannel channel() throws IOException {
    FileChannel open = channel;
    if (open == null) {
      open = parts.channels().take(segment);
      channel = open;
    }
    if (!begun) {
      // of what was there before, and would say less than there will be
      Files.deleteIfExists(segment.indexFile);
      begun = true;
    }
    return open;
  }

  /** For the readers' sake only: without it they map it anew as it grows. */
  private void extend(FileChannel open) {
    if (extended) {
      return;
    }
    extended = true;
    try {
      int size = parts.settings().segmentBytes();
      if (open.size() < size) {
        parts.disk().write(open, ByteBuffer.allocate(1), size - 1);
      }
    } catch (IOException e) {
      LOG.debug("segments: {} could not be extended: {}", segment, e.toString());
    }
  }
}
