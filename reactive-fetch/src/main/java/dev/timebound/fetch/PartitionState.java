package dev.timebound.fetch;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.Disposables;

/**
 * What a request knows of one of its partitions, over all its rounds: nothing that a round brought
 * is thrown away by a later one (FE-25). Of one thread.
 */
final class PartitionState {
  final FetchRequest.Partition asked;
  private final Isolation isolation;
  private final List<RecordBatch> batches = new ArrayList<>();
  private @Nullable Offsets offsets;
  private ErrorCode error = ErrorCode.NONE;
  private @Nullable Throwable cause;
  private long bytes;

  /** Its turn that runs, and what ends it. */
  @Nullable PartitionTurn turn;

  Disposable reading = Disposables.disposed();

  /** It has had a turn, or was passed over. */
  boolean begun;

  /** Ends its wake-ups; null where the store tells of none, or was not asked to. */
  @Nullable Disposable watch;

  PartitionState(FetchRequest.Partition asked, Isolation isolation) {
    this.asked = asked;
    this.isolation = isolation;
  }

  TopicPartition partition() {
    return asked.partition();
  }

  /** The next offset that the request wants. */
  long position() {
    return batches.isEmpty() ? asked.offset() : batches.get(batches.size() - 1).nextOffset();
  }

  /** How many bytes more it may bring by its own limit. */
  long wanted() {
    return Math.max(0, asked.maxBytes() - bytes);
  }

  boolean hasBatches() {
    return !batches.isEmpty();
  }

  boolean isUnknown() {
    return error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  }

  void begins(PartitionTurn next) {
    turn = next;
    begun = true;
  }

  void took(PartitionTurn ended) {
    turn = null;
    for (RecordBatch batch : ended.batches) {
      batches.add(batch);
      bytes += batch.sizeInBytes();
    }
    if (ended.offsets != null) {
      offsets = ended.offsets;
    }
    switch (ended.end) {
      case OUT_OF_RANGE -> failed(ErrorCode.OFFSET_OUT_OF_RANGE, null);
      case FAILED -> failed(ErrorCode.STORAGE_ERROR, ended.cause);
      case DONE -> failed(ErrorCode.NONE, null);
      case LATE, CUT -> {}
    }
  }

  /** The request is over: whatever it has under way for it ends. */
  void end() {
    reading.dispose();
    if (watch != null) {
      watch.dispose();
    }
  }

  void unknown() {
    failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, null);
  }

  void failed(ErrorCode code, @Nullable Throwable why) {
    error = code;
    cause = why;
  }

  /** Batches go before an error: the client moves on past them, and meets the error next time. */
  PartitionData answer() {
    if (error != ErrorCode.NONE && batches.isEmpty()) {
      return PartitionData.failed(partition(), error, cause);
    }
    if (offsets == null) {
      // No offsets, no records: as the client's own next request will have it (FE-11).
      return PartitionData.failed(partition(), ErrorCode.NONE, null);
    }
    Offsets told = batches.isEmpty() ? offsets : offsets.covering(position(), isolation);
    return new PartitionData(
        partition(),
        ErrorCode.NONE,
        told.highWatermark(),
        told.lastStable(),
        told.logStart(),
        isolation == Isolation.READ_COMMITTED ? aborted() : List.of(),
        batches,
        null);
  }

  private List<AbortedTransaction> aborted() {
    Set<AbortedTransaction> distinct = new LinkedHashSet<>();
    for (RecordBatch batch : batches) {
      distinct.addAll(batch.aborted());
    }
    List<AbortedTransaction> list = new ArrayList<>(distinct);
    list.sort(Comparator.comparingLong(AbortedTransaction::firstOffset));
    return list;
  }
}
