package dev.timebound.fetch.segments;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.zip.CRC32C;

/** Where a partition starts, where that is after the start of its first segment. */
final class StartFile {
  static final String NAME = "start";

  private static final long MAGIC = 0x5442_5354_4152_5431L; // "TBSTART1"
  private static final int OFFSET_AT = 8;
  private static final int CRC_AT = 16;
  private static final int SIZE = 20;

  private StartFile() {}

  static void write(Path directory, long offset) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(SIZE).putLong(MAGIC).putLong(offset);
    bytes.putInt(crc(bytes)).flip();
    Path written = directory.resolve(NAME + ".new");
    try (FileChannel channel =
        FileChannel.open(
            written,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      while (bytes.hasRemaining()) {
        channel.write(bytes);
      }
      channel.force(false);
    }
    Files.move(written, directory.resolve(NAME), StandardCopyOption.ATOMIC_MOVE);
  }

  /** 0 where there is none. */
  static long read(Path directory) throws IOException {
    Path file = directory.resolve(NAME);
    ByteBuffer bytes;
    try {
      bytes = ByteBuffer.wrap(Files.readAllBytes(file));
    } catch (NoSuchFileException e) {
      return 0;
    }
    if (bytes.remaining() != SIZE) {
      throw SegmentStoreException.at(file, 0, bytes.remaining() + " bytes", SIZE + " bytes");
    }
    if (bytes.getLong(0) != MAGIC) {
      throw SegmentStoreException.at(
          file, 0, "magic " + Long.toHexString(bytes.getLong(0)), Long.toHexString(MAGIC));
    }
    if (bytes.getInt(CRC_AT) != crc(bytes)) {
      throw SegmentStoreException.at(
          file,
          CRC_AT,
          "crc32c " + Integer.toHexString(bytes.getInt(CRC_AT)),
          Integer.toHexString(crc(bytes)));
    }
    return bytes.getLong(OFFSET_AT);
  }

  private static int crc(ByteBuffer bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes.duplicate().limit(CRC_AT).position(0));
    return (int) crc.getValue();
  }
}
