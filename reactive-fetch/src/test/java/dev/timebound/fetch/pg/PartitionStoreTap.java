package dev.timebound.fetch.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.ForwardingStore;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import java.util.function.Consumer;
import reactor.core.publisher.Flux;

/** Shows each batch that passes. */
final class PartitionStoreTap extends ForwardingStore {
  private final Consumer<RecordBatch> batches;

  PartitionStoreTap(PartitionStore store, Consumer<RecordBatch> batches) {
    super(store);
    this.batches = batches;
  }

  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    return super.read(partition, spec, budget).doOnNext(batches);
  }
}
