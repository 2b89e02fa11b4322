package dev.timebound.fetch.s3;

import dev.timebound.fetch.RecordBatch;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Makes batches of bytes as they arrive: each one once its last byte is there. For one read. */
final class Assembler {
  private final ObjectIndex index;
  private final int to;
  private final String where;
  private int next;
  private ByteBuffer batch;

  /**
   * @param from the batch that the first byte is of
   * @param to one past the last one
   */
  Assembler(ObjectIndex index, int from, int to, String where) {
    this.index = index;
    this.next = from;
    this.to = to;
    this.where = where;
    this.batch = room();
  }

  private ByteBuffer room() {
    return ByteBuffer.allocate(next < to ? index.sizeOf(next) : 0);
  }

  List<RecordBatch> take(ByteBuffer bytes) {
    List<RecordBatch> whole = new ArrayList<>();
    ByteBuffer in = bytes.duplicate();
    while (next < to) {
      int length = Math.min(in.remaining(), batch.remaining());
      batch.put(batch.position(), in, in.position(), length);
      batch.position(batch.position() + length);
      in.position(in.position() + length);
      if (batch.hasRemaining()) {
        break;
      }
      whole.add(batch());
    }
    return whole;
  }

  private RecordBatch batch() {
    ByteBuffer bytes = batch.flip();
    index.verify(next, bytes, where);
    RecordBatch made =
        new RecordBatch(
            bytes,
            index.base(next),
            index.base(next + 1) - 1,
            (int) (index.base(next + 1) - index.base(next)),
            index.time(next));
    next++;
    batch = room();
    return made;
  }

  /** In the object, of the next byte it needs. */
  long position() {
    return index.position(next) + batch.position();
  }
}
