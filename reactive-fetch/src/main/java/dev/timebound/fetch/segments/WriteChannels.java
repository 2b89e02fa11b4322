package dev.timebound.fetch.segments;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The files open for appends: those that are in use, and of the others those used last. A segment
 * is used by one thread at a time. Thread-safe; the lock is held for no call to the disk.
 */
final class WriteChannels {
  private final Disk disk;
  private final int most;
  private final Map<Segment, FileChannel> idle = new LinkedHashMap<>(16, 0.75f, true);

  WriteChannels(Disk disk, int most) {
    this.disk = disk;
    this.most = most;
  }

  /** To be given back. */
  FileChannel take(Segment segment) throws IOException {
    FileChannel kept;
    synchronized (idle) {
      kept = idle.remove(segment);
    }
    // an interrupt closes the file under whoever waits for it
    return kept != null && kept.isOpen() ? kept : disk.open(segment.file);
  }

  void giveBack(Segment segment, FileChannel channel) {
    List<FileChannel> over = new ArrayList<>(0);
    synchronized (idle) {
      FileChannel other = idle.put(segment, channel);
      if (other != null && other != channel) {
        over.add(other);
      }
      Iterator<FileChannel> eldest = idle.values().iterator();
      while (idle.size() > most) {
        over.add(eldest.next());
        eldest.remove();
      }
    }
    over.forEach(WriteChannels::close);
  }

  /** Closes a segment's file, where it is open and idle. */
  void forget(Segment segment) {
    @Nullable FileChannel kept;
    synchronized (idle) {
      kept = idle.remove(segment);
    }
    if (kept != null) {
      close(kept);
    }
  }

  int size() {
    synchronized (idle) {
      return idle.size();
    }
  }

  static void close(FileChannel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      // what was written was told of; nothing depends on this
    }
  }
}
