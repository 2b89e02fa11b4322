package dev.timebound.fetch.segments;

import java.nio.ByteBuffer;
import java.util.Locale;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * A batch in its segment, big-endian: a header of {@value #HEADER} bytes, then the batch's bytes.
 *
 * <pre>
 *  0 crc32c of all that follows, the batch's bytes included
 *  4 length of the batch's bytes
 *  8 base offset
 * 16 records: as many offsets are its own
 * 20 kind
 * 24 max timestamp, −1 for none
 * 32 producer of a transaction's batch or marker, −1 otherwise
 * </pre>
 */
final class Frame {
  static final int HEADER = 40;

  /** The largest batch: a segment's positions are ints. */
  static final int MOST_BYTES = 1 << 30;

  private static final int LENGTH = 4;
  private static final int BASE = 8;
  private static final int RECORDS = 16;
  private static final int KIND = 20;
  private static final int TIMESTAMP = 24;
  private static final int PRODUCER = 32;

  /** What a batch is; its ordinal is in the file. */
  enum Kind {
    PLAIN,
    TRANSACTIONAL,
    COMMIT,
    ABORT;

    private static final Kind[] ALL = values();
  }

  private Frame() {}

  /**
   * Writes the header at the buffer's position, which it moves. The checksum takes in what the
   * batch's buffer holds, and leaves that as it is.
   */
  static void put(
      ByteBuffer into,
      CRC32C crc,
      ByteBuffer batch,
      long base,
      int records,
      Kind kind,
      long maxTimestamp,
      long producerId) {
    int at = into.position();
    into.putInt(0)
        .putInt(batch.remaining())
        .putLong(base)
        .putInt(records)
        .putInt(kind.ordinal())
        .putLong(maxTimestamp)
        .putLong(producerId);
    crc.reset();
    crc.update(into.duplicate().position(at + LENGTH).limit(at + HEADER));
    crc.update(batch.duplicate());
    into.putInt(at, (int) crc.getValue());
  }

  static int length(ByteBuffer segment, int at) {
    return segment.getInt(at + LENGTH);
  }

  /** Where the next one begins. */
  static int end(ByteBuffer segment, int at) {
    return at + HEADER + length(segment, at);
  }

  static long base(ByteBuffer segment, int at) {
    return segment.getLong(at + BASE);
  }

  static int records(ByteBuffer segment, int at) {
    return segment.getInt(at + RECORDS);
  }

  static long last(ByteBuffer segment, int at) {
    return base(segment, at) + records(segment, at) - 1;
  }

  static Kind kind(ByteBuffer segment, int at) {
    return Kind.ALL[segment.getInt(at + KIND)];
  }

  static long maxTimestamp(ByteBuffer segment, int at) {
    return segment.getLong(at + TIMESTAMP);
  }

  static long producerId(ByteBuffer segment, int at) {
    return segment.getLong(at + PRODUCER);
  }

  /**
   * What is wrong with the frame at a place; null where nothing is.
   *
   * @param limit where the file ends
   * @param base the offset it has to begin with
   */
  static @Nullable String fault(ByteBuffer segment, int at, int limit, long base, CRC32C crc) {
    if (limit - at < HEADER) {
      return (limit - at) + " bytes (expected: a header of " + HEADER + ")";
    }
    int length = length(segment, at);
    if (length < 0 || length > limit - at - HEADER) {
      return "length " + length + " (expected: 0.." + (limit - at - HEADER) + ")";
    }
    if (base(segment, at) != base) {
      return "base offset " + base(segment, at) + " (expected: " + base + ")";
    }
    if (records(segment, at) < 1) {
      return "records " + records(segment, at) + " (expected: >= 1)";
    }
    int kind = segment.getInt(at + KIND);
    if (kind < 0 || kind >= Kind.ALL.length) {
      return "kind " + kind + " (expected: 0.." + (Kind.ALL.length - 1) + ")";
    }
    crc.reset();
    crc.update(segment.duplicate().limit(at + HEADER + length).position(at + LENGTH));
    int is = (int) crc.getValue();
    return is == segment.getInt(at)
        ? null
        : String.format(Locale.ROOT, "crc32c %08x (expected: %08x)", segment.getInt(at), is);
  }
}
