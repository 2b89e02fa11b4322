package dev.timebound.fetch.segments;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** The first {@value #SIZE} bytes of a segment: what it is, its version, its base offset. */
final class SegmentHeader {
  static final int SIZE = 32;

  private static final long MAGIC = 0x5442_5345_474d_4e54L; // "TBSEGMNT"
  private static final int VERSION = 1;
  private static final int VERSION_AT = 8;
  static final int BASE_AT = 16;

  private SegmentHeader() {}

  static ByteBuffer of(long base) {
    return ByteBuffer.allocate(SIZE)
        .putLong(0, MAGIC)
        .putInt(VERSION_AT, VERSION)
        .putLong(BASE_AT, base);
  }

  /** Whether nothing was ever written there: the process died as it made the file. */
  static boolean isUnwritten(ByteBuffer segment) {
    if (segment.limit() < SIZE) {
      return true;
    }
    for (int i = 0; i < SIZE; i += Long.BYTES) {
      if (segment.getLong(i) != 0) {
        return false;
      }
    }
    return true;
  }

  /** What does not stand there as it must, and where; null for a segment of this base offset. */
  static @Nullable Fault fault(ByteBuffer segment, long base) {
    long magic = segment.getLong(0);
    if (magic != MAGIC) {
      return new Fault(
          0, "magic " + Long.toHexString(magic) + " (expected: " + Long.toHexString(MAGIC) + ")");
    }
    int version = segment.getInt(VERSION_AT);
    if (version != VERSION) {
      return new Fault(VERSION_AT, "version " + version + " (expected: " + VERSION + ")");
    }
    long found = segment.getLong(BASE_AT);
    return found == base
        ? null
        : new Fault(BASE_AT, "base offset " + found + " (expected: " + base + ")");
  }

  /** What is wrong with a header. */
  record Fault(int at, String what) {
    /** Whether it may be what another version wrote, and no damage. */
    boolean isVersion() {
      return at == VERSION_AT;
    }
  }
}
