package dev.timebound.fetch.segments;

import java.io.IOException;
import java.nio.MappedByteBuffer;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The segments mapped now, those read last. What is left out here stays mapped as long as somebody
 * holds a batch of it. Thread-safe; the lock is held for no call to the disk.
 */
final class SegmentMaps {
  private final Disk disk;
  private final int most;
  private final int indexEvery;
  private final Map<Segment, Mapped> byUse = new LinkedHashMap<>(16, 0.75f, true);

  SegmentMaps(Disk disk, int most, int indexEvery) {
    this.disk = disk;
    this.most = most;
    this.indexEvery = indexEvery;
  }

  /** What is mapped of a segment up to a position, if it is; never waits for the disk. */
  @Nullable Mapped ifMapped(Segment segment, int limit) {
    synchronized (byUse) {
      Mapped found = byUse.get(segment);
      return found != null && found.bytes.capacity() >= limit ? found : null;
    }
  }

  /** A segment, mapped at least up to a position. */
  Mapped get(Segment segment, int limit) throws IOException {
    Mapped found = ifMapped(segment, limit);
    if (found != null) {
      return found;
    }
    MappedByteBuffer bytes = disk.map(segment.file);
    if (bytes.capacity() < limit) {
      throw SegmentStoreException.at(
          segment.file, bytes.capacity(), "its end", "at least " + limit + " bytes");
    }
    Mapped plain = new Mapped(segment.file, bytes);
    Mapped made = plain.with(index(segment, plain, limit));
    synchronized (byUse) {
      byUse.put(segment, made);
      Iterator<Segment> eldest = byUse.keySet().iterator();
      while (byUse.size() > most) {
        eldest.next();
        eldest.remove();
      }
    }
    return made;
  }

  private SparseIndex index(Segment segment, Mapped mapped, int limit) {
    SparseIndex live = segment.live();
    if (live != null) {
      return live;
    }
    SparseIndex kept = IndexFile.index(segment, indexEvery);
    return kept != null ? kept : Mapped.indexed(mapped, limit, indexEvery);
  }

  void forget(Segment segment) {
    synchronized (byUse) {
      byUse.remove(segment);
    }
  }

  int size() {
    synchronized (byUse) {
      return byUse.size();
    }
  }
}
