package dev.timebound.fetch.segments;

import dev.timebound.fetch.segments.Transactions.Aborted;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * The file beside a sealed segment: its summary, by which a store is opened without reading the
 * segment, and its index. Written once, after the segment was forced to the disk. It says nothing
 * that the segment does not: where it is missing or damaged it is made anew.
 *
 * <pre>
 *  0 magic "TBINDEX1"
 *  8 length of the segment
 * 12 entries of the index
 * 16 base offset
 * 24 next offset, after the last batch
 * 32 latest time
 * 40 aborted transactions that ended in the segment
 * 44 transactions open at its end
 * 48 aborted: producer, first offset, marker's offset, last stable offset (32 bytes each)
 *    open: producer, first offset (16 bytes each)
 *    crc32c of all of that
 *    index: offset, position, latest time before it (20 bytes each)
 *    crc32c of the index
 * </pre>
 */
final class IndexFile {
  private static final long MAGIC = 0x5442_494e_4445_5831L; // "TBINDEX1"
  private static final int FIXED = 48;
  private static final int ABORTED = 32;
  private static final int OPEN = 16;
  private static final int CRC = 4;

  /** What it says of its segment. */
  record Summary(int length, long next, long latest, List<Aborted> aborted, Map<Long, Long> open) {}

  private IndexFile() {}

  /**
   * @param aborted those that ended in the segment
   * @param entries of the index to be written
   */
  static void write(Segment segment, Summary summary, SparseIndex index, int entries)
      throws IOException {
    List<Aborted> aborted = summary.aborted();
    Map<Long, Long> open = summary.open();
    int head = FIXED + aborted.size() * ABORTED + open.size() * OPEN;
    ByteBuffer file = ByteBuffer.allocate(head + CRC + entries * SparseIndex.ENTRY + CRC);
    file.putLong(MAGIC).putInt(summary.length()).putInt(entries).putLong(segment.base);
    file.putLong(summary.next()).putLong(summary.latest());
    file.putInt(aborted.size()).putInt(open.size());
    for (Aborted each : aborted) {
      file.putLong(each.producerId()).putLong(each.first());
      file.putLong(each.last()).putLong(each.stable());
    }
    open.forEach((producer, first) -> file.putLong(producer).putLong(first));
    file.putInt(crc(file, 0, head));
    index.writeTo(file, entries);
    file.putInt(crc(file, head + CRC, file.position()));
    Path written = segment.indexFile.resolveSibling(segment.indexFile.getFileName() + ".new");
    Files.write(written, file.array());
    Files.move(written, segment.indexFile, StandardCopyOption.ATOMIC_MOVE);
  }

  /** Null where there is none that is whole. */
  static @Nullable Summary summary(Segment segment) {
    try (FileChannel channel = FileChannel.open(segment.indexFile, StandardOpenOption.READ)) {
      @Nullable ByteBuffer head = head(channel, segment);
      return head == null ? null : summary(head);
    } catch (IOException e) {
      return null;
    }
  }

  /** The first part, at its start; null where it is not whole. */
  private static @Nullable ByteBuffer head(FileChannel channel, Segment segment)
      throws IOException {
    ByteBuffer fixed = read(channel, 0, FIXED);
    if (fixed.remaining() < FIXED
        || fixed.getLong(0) != MAGIC
        || fixed.getLong(16) != segment.base) {
      return null;
    }
    long length = headLength(fixed);
    if (fixed.getInt(40) < 0 || fixed.getInt(44) < 0 || length + CRC > channel.size()) {
      return null;
    }
    ByteBuffer head = read(channel, 0, (int) length + CRC);
    boolean whole =
        head.remaining() == length + CRC && crc(head, 0, (int) length) == head.getInt((int) length);
    return whole ? head : null;
  }

  private static long headLength(ByteBuffer fixed) {
    return FIXED + (long) fixed.getInt(40) * ABORTED + (long) fixed.getInt(44) * OPEN;
  }

  private static Summary summary(ByteBuffer head) {
    head.position(FIXED);
    List<Aborted> aborted = new ArrayList<>();
    for (int i = 0; i < head.getInt(40); i++) {
      aborted.add(new Aborted(head.getLong(), head.getLong(), head.getLong(), head.getLong()));
    }
    Map<Long, Long> open = new LinkedHashMap<>();
    for (int i = 0; i < head.getInt(44); i++) {
      open.put(head.getLong(), head.getLong());
    }
    return new Summary(head.getInt(8), head.getLong(24), head.getLong(32), aborted, open);
  }

  /** Null where there is none that is whole. */
  static @Nullable SparseIndex index(Segment segment, int every) {
    try (FileChannel channel = FileChannel.open(segment.indexFile, StandardOpenOption.READ)) {
      @Nullable ByteBuffer head = head(channel, segment);
      if (head == null) {
        return null;
      }
      long bytes = (long) head.getInt(12) * SparseIndex.ENTRY;
      if (bytes < 0 || head.limit() + bytes + CRC != channel.size()) {
        return null;
      }
      ByteBuffer entries = read(channel, head.limit(), (int) bytes + CRC);
      if (entries.remaining() < bytes + CRC
          || crc(entries, 0, (int) bytes) != entries.getInt((int) bytes)) {
        return null;
      }
      return SparseIndex.read(entries, head.getInt(12), every);
    } catch (IOException e) {
      return null;
    }
  }

  private static ByteBuffer read(FileChannel channel, long at, int length) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(length);
    while (bytes.hasRemaining() && channel.read(bytes, at + bytes.position()) >= 0) {
      // until it is full, or the file ends
    }
    return bytes.flip();
  }

  private static int crc(ByteBuffer file, int from, int to) {
    CRC32C crc = new CRC32C();
    crc.update(file.duplicate().limit(to).position(from));
    return (int) crc.getValue();
  }
}
