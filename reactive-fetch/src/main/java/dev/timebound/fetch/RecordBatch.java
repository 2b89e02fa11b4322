package dev.timebound.fetch;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;

/**
 * A batch of records as the log holds it. The bytes are neither looked into nor copied; whoever
 * makes a batch must leave them as they are from then on.
 *
 * <p>Of a compacted batch offsets may be missing within it; the next batch's base offset is at
 * least {@code lastOffset + 1}. Immutable.
 *
 * @param bytes position to limit is the batch, one at least; read-only views of its own are handed
 *     out
 * @param baseOffset of its first record, {@code >= 0}
 * @param lastOffset of its last record, {@code >= baseOffset}
 * @param recordCount {@code >= 1}
 * @param maxTimestamp the latest of its records' times, in milliseconds since 1970; −1 for none
 * @param aborted the aborted transactions that have records in this batch, for READ_COMMITTED
 *     readers; empty otherwise
 */
public record RecordBatch(
    ByteBuffer bytes,
    long baseOffset,
    long lastOffset,
    int recordCount,
    long maxTimestamp,
    List<AbortedTransaction> aborted) {
  public RecordBatch {
    bytes = Objects.requireNonNull(bytes, "bytes").asReadOnlyBuffer();
    if (!bytes.hasRemaining()) {
      throw Settings.refused("bytes", "none", "one at least");
    }
    if (baseOffset < 0) {
      throw Settings.refused("baseOffset", baseOffset, ">= 0");
    }
    if (lastOffset < baseOffset) {
      throw Settings.refused("lastOffset", lastOffset, ">= baseOffset " + baseOffset);
    }
    Settings.atLeast("recordCount", recordCount, 1);
    aborted = List.copyOf(aborted);
  }

  /** A batch without aborted transactions. */
  public RecordBatch(
      ByteBuffer bytes, long baseOffset, long lastOffset, int recordCount, long maxTimestamp) {
    this(bytes, baseOffset, lastOffset, recordCount, maxTimestamp, List.of());
  }

  /** A read-only view with a position of its own; nothing is copied. */
  @Override
  public ByteBuffer bytes() {
    return bytes.duplicate();
  }

  /** How many bytes it counts for against the limits of a request. */
  public int sizeInBytes() {
    return bytes.remaining();
  }

  /** Where a reader goes on after it. */
  public long nextOffset() {
    return lastOffset + 1;
  }

  /** The same bytes, with the transactions of it that were aborted. */
  public RecordBatch withAborted(List<AbortedTransaction> transactions) {
    return new RecordBatch(bytes, baseOffset, lastOffset, recordCount, maxTimestamp, transactions);
  }

  @Override
  public String toString() {
    return "RecordBatch[" + baseOffset + ".." + lastOffset + ", " + sizeInBytes() + " bytes]";
  }
}
