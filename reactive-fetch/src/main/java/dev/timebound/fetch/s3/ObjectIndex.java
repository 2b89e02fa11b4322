package dev.timebound.fetch.s3;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * What an object begins with: which batches it has, and where. Big-endian: magic and version (8
 * bytes), crc32c of all that follows up to the first batch (4), number of batches (4), base offset
 * (8), latest time of this object and all before it (8), the append (16), and of each batch its
 * length (4), records (4), latest time (8) and crc32c (4). The batches follow.
 */
final class ObjectIndex {
  private static final long MAGIC = 0x54424F424A454301L; // TBOBJEC, 1
  private static final int HEAD = 48;
  private static final int ENTRY = 20;

  /** Bytes that tell how long it is. */
  static final int LEAST = 16;

  final long base;
  final long latest;
  final long writer;
  final long append;
  private final long[] bases; // one more than batches
  private final long[] positions; // one more than batches
  private final long[] times;
  private final int[] checks;

  private ObjectIndex(long base, long latest, long writer, long append, int batches) {
    this.base = base;
    this.latest = latest;
    this.writer = writer;
    this.append = append;
    this.bases = new long[batches + 1];
    this.positions = new long[batches + 1];
    this.times = new long[batches];
    this.checks = new int[batches];
    bases[0] = base;
    positions[0] = length(batches);
  }

  static int length(int batches) {
    return HEAD + ENTRY * batches;
  }

  int batches() {
    return times.length;
  }

  /** One past its last offset. */
  long end() {
    return bases[batches()];
  }

  /** In bytes, of the whole object. */
  long size() {
    return positions[batches()];
  }

  long base(int batch) {
    return bases[batch];
  }

  /** Where a batch begins; of one past the last, where the object ends. */
  long position(int batch) {
    return positions[batch];
  }

  int length(int from, int to) {
    return Math.toIntExact(positions[to] - positions[from]);
  }

  int sizeOf(int batch) {
    return length(batch, batch + 1);
  }

  long time(int batch) {
    return times[batch];
  }

  int check(int batch) {
    return checks[batch];
  }

  /** The batch that holds an offset within it. */
  int holding(long offset) {
    int low = 0;
    int high = batches() - 1;
    while (low < high) {
      int mid = (low + high + 1) >>> 1;
      if (bases[mid] <= offset) {
        low = mid;
      } else {
        high = mid - 1;
      }
    }
    return low;
  }

  /** In memory. */
  int weight() {
    return 160 + 28 * batches();
  }

  /** One batch of an object that is made. */
  record Part(ByteBuffer bytes, int records, long time) {}

  /** A whole object. */
  static ByteBuffer object(
      long base, long latestBefore, long writer, long append, Iterable<Part> parts) {
    int batches = 0;
    long size = 0;
    long latest = latestBefore;
    for (Part part : parts) {
      batches++;
      size += part.bytes().remaining();
      latest = Math.max(latest, part.time());
    }
    ByteBuffer object = ByteBuffer.allocate(Math.toIntExact(length(batches) + size));
    object.putLong(MAGIC).putInt(0).putInt(batches).putLong(base).putLong(latest);
    object.putLong(writer).putLong(append);
    for (Part part : parts) {
      object.putInt(part.bytes().remaining()).putInt(part.records()).putLong(part.time());
      object.putInt(crc(part.bytes().duplicate()));
    }
    object.putInt(8, crc(object.duplicate().flip().position(12)));
    for (Part part : parts) {
      object.put(part.bytes().duplicate());
    }
    return object.flip();
  }

  /** How many bytes an index has, from its first ones. */
  static int lengthOf(ByteBuffer first, String where) {
    if (first.remaining() < LEAST) {
      throw damaged(where, first.remaining() + " bytes", "an index of " + LEAST + " at least");
    }
    long magic = first.getLong(first.position());
    if (magic != MAGIC) {
      throw damaged(
          where,
          "an object that begins with " + Long.toHexString(magic),
          Long.toHexString(MAGIC) + ", of one that this store wrote");
    }
    int batches = first.getInt(first.position() + 12);
    if (batches < 1 || batches > (Integer.MAX_VALUE - HEAD) / ENTRY) {
      throw damaged(where, batches + " batches", ">= 1");
    }
    return length(batches);
  }

  /** From its bytes, whole; what follows them is not looked at. */
  static ObjectIndex of(ByteBuffer bytes, long expectedBase, String where) {
    ByteBuffer in = bytes.slice(bytes.position(), lengthOf(bytes, where));
    int check = in.getInt(8);
    int found = crc(in.duplicate().position(12));
    if (check != found) {
      throw damaged(where, "an index of crc32c " + hex(found), hex(check));
    }
    in.position(12);
    int batches = in.getInt();
    ObjectIndex index =
        new ObjectIndex(in.getLong(), in.getLong(), in.getLong(), in.getLong(), batches);
    if (index.base != expectedBase) {
      throw damaged(where, "base offset " + index.base, expectedBase + ", as it is named");
    }
    for (int i = 0; i < batches; i++) {
      int length = in.getInt();
      int records = in.getInt();
      if (length < 0 || records < 1) {
        throw damaged(where, length + " bytes of " + records + " records", ">= 0, of >= 1");
      }
      index.positions[i + 1] = index.positions[i] + length;
      index.bases[i + 1] = index.bases[i] + records;
      index.times[i] = in.getLong();
      index.checks[i] = in.getInt();
    }
    return index;
  }

  /** The bytes of a batch as they came, if they are those that were written. */
  void verify(int batch, ByteBuffer bytes, String where) {
    int found = crc(bytes.duplicate());
    if (found != checks[batch]) {
      throw damaged(
          where, "the batch at " + bases[batch] + " with crc32c " + hex(found), hex(checks[batch]));
    }
  }

  static S3StoreException damaged(String where, String found, String expected) {
    return damaged(where, found, expected, null);
  }

  static S3StoreException damaged(
      String where, String found, String expected, @Nullable Throwable cause) {
    return new S3StoreException(where + ": " + found + " (expected: " + expected + ")", cause);
  }

  private static String hex(int crc) {
    return String.format("%08x", crc);
  }

  private static int crc(ByteBuffer bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    return (int) crc.getValue();
  }
}
