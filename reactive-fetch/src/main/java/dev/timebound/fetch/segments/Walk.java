package dev.timebound.fetch.segments;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/** Reads a segment from its first batch to the first one that is not whole, and sums it up. */
final class Walk {
  final SparseIndex index;
  int position = SegmentHeader.SIZE;
  long next;
  long latest = -1;
  Transactions transactions;

  /** What is wrong with what follows; null where the file ends there. */
  @Nullable String fault;

  private Walk(long base, Transactions before, int indexEvery) {
    this.next = base;
    this.transactions = before;
    this.index = new SparseIndex(indexEvery);
  }

  /**
   * @param before the transactions of all segments before it
   */
  static Walk over(ByteBuffer segment, long base, Transactions before, int indexEvery) {
    Walk walk = new Walk(base, before, indexEvery);
    CRC32C crc = new CRC32C();
    int limit = segment.limit();
    while (walk.position < limit) {
      walk.fault = Frame.fault(segment, walk.position, limit, walk.next, crc);
      if (walk.fault != null) {
        break;
      }
      walk.take(segment);
    }
    return walk;
  }

  private void take(ByteBuffer segment) {
    int at = position;
    index.add(next, at, latest);
    latest = Math.max(latest, Frame.maxTimestamp(segment, at));
    transactions =
        transactions.after(
            Frame.kind(segment, at),
            Frame.producerId(segment, at),
            next,
            Frame.records(segment, at));
    next = Frame.last(segment, at) + 1;
    position = Frame.end(segment, at);
  }

  boolean isEmpty() {
    return position == SegmentHeader.SIZE;
  }
}
