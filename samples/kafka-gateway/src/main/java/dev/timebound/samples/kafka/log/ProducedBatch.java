package dev.timebound.samples.kafka.log;

import dev.timebound.fetch.RecordBatch;
import java.nio.ByteBuffer;

/**
 * A batch as a producer sent it, checked, before it has offsets.
 *
 * <p>The first twelve bytes of a batch, its base offset and length, and the four after them, the
 * leader's epoch, lie outside its checksum: it gets its offsets without being read.
 *
 * @param bytes position to limit is one batch of format 2; whoever makes this leaves them to it
 * @param recordCount {@code >= 1}
 * @param maxTimestamp in milliseconds since 1970; −1 for none
 * @param producerId −1 where the producer is not idempotent; then the two that follow say nothing
 * @param producerEpoch {@code >= 0}
 * @param baseSequence of the first record, {@code >= 0}
 */
public record ProducedBatch(
    ByteBuffer bytes,
    int recordCount,
    long maxTimestamp,
    long producerId,
    short producerEpoch,
    int baseSequence) {
  private static final int BASE_OFFSET = 0;
  private static final int LEADER_EPOCH = 12;

  private static final int PRODUCER_ID = 43;
  private static final int PRODUCER_EPOCH = 51;
  private static final int BASE_SEQUENCE = 53;

  /** No epochs are kept, so that none is checked by a client. */
  private static final int NO_LEADER_EPOCH = -1;

  /** One that a log holds, as it was when it was produced. */
  static ProducedBatch stored(RecordBatch batch) {
    ByteBuffer bytes = batch.bytes();
    int start = bytes.position();
    return new ProducedBatch(
        bytes,
        batch.recordCount(),
        batch.maxTimestamp(),
        bytes.getLong(start + PRODUCER_ID),
        bytes.getShort(start + PRODUCER_EPOCH),
        bytes.getInt(start + BASE_SEQUENCE));
  }

  boolean isIdempotent() {
    return producerId >= 0;
  }

  /** Of the last record; after the largest int comes 0. */
  int lastSequence() {
    return ProducerState.after(baseSequence, recordCount - 1);
  }

  /**
   * The bytes of the batch at its place in the log. They are written to, not copied: once the batch
   * was handed to readers, this is not called again.
   */
  ByteBuffer at(long baseOffset) {
    int start = bytes.position();
    bytes.putLong(start + BASE_OFFSET, baseOffset);
    bytes.putInt(start + LEADER_EPOCH, NO_LEADER_EPOCH);
    return bytes;
  }
}
