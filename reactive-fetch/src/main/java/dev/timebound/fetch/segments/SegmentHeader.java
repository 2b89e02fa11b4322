package dev.timebound.fetch.segments;

import java.nio.ByteBuffer;
import java.nio.file.Path;

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

  /**
   * @throws SegmentStoreException where it is no segment of this version and base offset
   */
  static void check(Path file, ByteBuffer segment, long base) {
    expect(file, 0, "magic", segment.getLong(0), MAGIC);
    expect(file, VERSION_AT, "version", segment.getInt(VERSION_AT), VERSION);
    expect(file, BASE_AT, "base offset", segment.getLong(BASE_AT), base);
  }

  private static void expect(Path file, int at, String what, long is, long expected) {
    if (is != expected) {
      boolean magic = at == 0;
      throw SegmentStoreException.at(
          file,
          at,
          what + " " + (magic ? Long.toHexString(is) : Long.toString(is)),
          magic ? Long.toHexString(expected) : Long.toString(expected));
    }
  }
}
