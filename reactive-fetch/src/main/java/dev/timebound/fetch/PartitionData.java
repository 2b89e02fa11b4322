package dev.timebound.fetch;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What one partition answers.
 *
 * @param highWatermark −1 where it is not known: the partition's offsets did not come in time
 *     (FE-11), or there is an error; the same of the two that follow
 * @param aborted under READ_COMMITTED, those with records in the batches, by first offset
 * @param batches what was read, in order, the first one holding the offset that was asked for;
 *     empty with an error
 * @param cause of a {@link ErrorCode#STORAGE_ERROR}, for this side's eyes
 */
public record PartitionData(
    TopicPartition partition,
    ErrorCode error,
    long highWatermark,
    long lastStableOffset,
    long logStartOffset,
    List<AbortedTransaction> aborted,
    List<RecordBatch> batches,
    @Nullable Throwable cause) {
  public PartitionData {
    aborted = List.copyOf(aborted);
    batches = List.copyOf(batches);
  }

  static PartitionData failed(
      TopicPartition partition, ErrorCode error, @Nullable Throwable cause) {
    return new PartitionData(partition, error, -1, -1, -1, List.of(), List.of(), cause);
  }

  /** The sum of the batches. */
  public long sizeInBytes() {
    return batches.stream().mapToLong(RecordBatch::sizeInBytes).sum();
  }
}
