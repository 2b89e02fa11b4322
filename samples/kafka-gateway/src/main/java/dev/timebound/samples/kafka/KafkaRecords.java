package dev.timebound.samples.kafka;

import dev.timebound.fetch.RecordBatch;
import dev.timebound.samples.kafka.log.ProducedBatch;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.List;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.UnsupportedCompressionTypeException;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.protocol.Writable;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.RecordsSend;

/**
 * The only class that knows the client library's record classes: they are internal to it and move
 * between its releases.
 */
final class KafkaRecords {
  private static final byte FORMAT = 2;
  private static final short FIRST_VERSION_WITH_ZSTD = 7;

  private KafkaRecords() {}

  /**
   * The batch of a partition as a producer sent it, checked as a broker checks it without unpacking
   * the records: one batch, of format 2, whose checksum is right and whose counts agree. The bytes
   * are those of the request.
   *
   * @param version of the Produce request
   * @param mostBytes the largest batch that is taken
   * @throws org.apache.kafka.common.errors.ApiException whose error is the partition's answer
   */
  static ProducedBatch produced(
      ProduceRequestData.PartitionProduceData data, short version, int mostBytes) {
    if (!(data.records() instanceof MemoryRecords records)) {
      throw new InvalidRecordException("no records");
    }
    Iterator<MutableRecordBatch> batches = records.batches().iterator();
    if (!batches.hasNext()) {
      throw new InvalidRecordException("no whole batch");
    }
    MutableRecordBatch batch = batches.next();
    if (batches.hasNext() || batch.sizeInBytes() != records.sizeInBytes()) {
      throw new InvalidRecordException("more than one batch");
    }
    if (batch.magic() != FORMAT) {
      throw new InvalidRecordException("format " + batch.magic() + " (expected: " + FORMAT + ")");
    }
    if (batch.sizeInBytes() > mostBytes) {
      throw new RecordTooLargeException(
          "a batch of " + batch.sizeInBytes() + " bytes (expected: at most " + mostBytes + ")");
    }
    if (!batch.isValid()) {
      throw new CorruptRecordException("the batch's checksum is wrong");
    }
    check(batch, version);
    return new ProducedBatch(
        records.buffer(),
        batch.countOrNull(),
        batch.maxTimestamp(),
        batch.producerId(),
        batch.producerEpoch(),
        batch.baseSequence());
  }

  private static void check(MutableRecordBatch batch, short version) {
    Integer count = batch.countOrNull();
    if (count == null || count < 1 || batch.lastOffset() - batch.baseOffset() != count - 1) {
      throw new InvalidRecordException(
          "a batch of "
              + count
              + " records with offsets from "
              + batch.baseOffset()
              + " to "
              + batch.lastOffset());
    }
    if (batch.isControlBatch()) {
      throw new InvalidRecordException("a control batch, which clients do not write");
    }
    if (batch.hasProducerId() && (batch.baseSequence() < 0 || batch.producerEpoch() < 0)) {
      throw new InvalidRecordException("a producer id without a sequence number");
    }
    if (batch.isTransactional()) {
      throw new InvalidTxnStateException("transactions are not offered");
    }
    if (batch.compressionType() == CompressionType.ZSTD && version < FIRST_VERSION_WITH_ZSTD) {
      throw new UnsupportedCompressionTypeException("zstd before Produce version 7");
    }
  }

  /** Puts batches into an answer. Their bytes are not copied. */
  static void answer(FetchResponseData.PartitionData data, List<RecordBatch> batches) {
    data.setRecords(batches.isEmpty() ? MemoryRecords.EMPTY : new Batches(batches));
  }

  /** What a message is written to; records go through it buffer by buffer. */
  abstract static class Sink implements Writable {
    /** Takes the buffer's bytes as they are, without copying them. */
    abstract void writeRecordBytes(ByteBuffer bytes);

    @Override
    public final void writeRecords(BaseRecords records) {
      if (records instanceof Batches several) {
        for (RecordBatch batch : several.batches) {
          writeRecordBytes(batch.bytes());
        }
      } else if (records instanceof MemoryRecords one) {
        writeRecordBytes(one.buffer());
      } else {
        throw new IllegalArgumentException("records: " + records.getClass());
      }
    }
  }

  /** Batches that lie apart in memory, as the one field that they are in an answer. */
  private static final class Batches implements BaseRecords {
    private final List<RecordBatch> batches;
    private final int size;

    Batches(List<RecordBatch> batches) {
      this.batches = batches;
      this.size = Math.toIntExact(batches.stream().mapToLong(RecordBatch::sizeInBytes).sum());
    }

    @Override
    public int sizeInBytes() {
      return size;
    }

    @Override
    public RecordsSend<? extends BaseRecords> toSend() {
      throw new UnsupportedOperationException("written by a Sink");
    }
  }
}
