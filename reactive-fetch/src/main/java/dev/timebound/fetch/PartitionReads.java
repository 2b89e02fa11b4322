package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import reactor.core.publisher.Flux;

/** Where a turn's batches come from: the store, or a read that goes on from an earlier request. */
interface PartitionReads {
  /** A cancel leaves it; whether the read ends by that is its own matter. */
  Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget);

  /** Whether there is something to be had without the store, so that it need not be held back. */
  default boolean isAtHand(TopicPartition partition) {
    return false;
  }

  /** The request that read the partition was cancelled by its client. */
  default void left(TopicPartition partition) {}
}
