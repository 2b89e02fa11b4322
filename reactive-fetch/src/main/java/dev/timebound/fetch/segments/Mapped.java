package dev.timebound.fetch.segments;

import java.nio.MappedByteBuffer;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * A segment as readers have it. The mapping goes, and with it the space of a file that was deleted,
 * once the last batch that was read from it is unreachable: there is no safe way to take it from
 * them sooner.
 */
final class Mapped {
  final Path file;
  final MappedByteBuffer bytes;
  private final @Nullable SparseIndex index;

  /** To be walked from its start. */
  Mapped(Path file, MappedByteBuffer bytes) {
    this(file, bytes, null);
  }

  private Mapped(Path file, MappedByteBuffer bytes, @Nullable SparseIndex index) {
    this.file = file;
    this.bytes = bytes;
    this.index = index;
  }

  Mapped with(SparseIndex of) {
    return new Mapped(file, bytes, of);
  }

  /** Whether a part is in memory at this moment: to read it waits for no disk. */
  boolean isResident(int position, int length) {
    return length == 0 || bytes.slice(position, length).isLoaded();
  }

  /** From where on the batch that holds an offset is to be looked for. */
  int floor(long offset) {
    return index == null ? SegmentHeader.SIZE : index.floor(offset);
  }

  /** From where on the first batch with a record at or after a time is to be looked for. */
  int floorOfTime(long timestamp) {
    return index == null ? SegmentHeader.SIZE : index.floorOfTime(timestamp);
  }

  /**
   * Where the frame ends that begins there.
   *
   * @throws SegmentStoreException where it is none: the file has changed since it was opened
   */
  int end(int at, int limit) {
    int room = limit - at - Frame.HEADER;
    int length = room < 0 ? -1 : Frame.length(bytes, at);
    if (length < 0 || length > room || Frame.records(bytes, at) < 1) {
      throw SegmentStoreException.at(
          file, at, "length " + length, "a batch of 0.." + Math.max(0, room) + " bytes");
    }
    return at + Frame.HEADER + length;
  }

  /**
   * Where the frame of the batch that holds an offset begins, or of the first one after it; the
   * limit where there is none.
   */
  int positionOf(long offset, int limit) {
    int at = floor(offset);
    while (at < limit) {
      int end = end(at, limit);
      if (Frame.last(bytes, at) >= offset) {
        return at;
      }
      at = end;
    }
    return limit;
  }

  /** The index of a segment whose index file is not whole. */
  static SparseIndex indexed(Mapped segment, int limit, int every) {
    SparseIndex index = new SparseIndex(every);
    long latest = -1;
    for (int at = SegmentHeader.SIZE; at < limit; at = segment.end(at, limit)) {
      index.add(Frame.base(segment.bytes, at), at, latest);
      latest = Math.max(latest, Frame.maxTimestamp(segment.bytes, at));
    }
    return index;
  }
}
