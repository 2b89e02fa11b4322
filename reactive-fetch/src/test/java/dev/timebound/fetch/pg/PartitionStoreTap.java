package dev.timebound.fetch.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import java.util.Set;
import java.util.function.Consumer;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Shows each batch that passes. */
record PartitionStoreTap(PartitionStore store, Consumer<RecordBatch> batches)
    implements PartitionStore {
  @Override
  public Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked) {
    return store.existing(asked);
  }

  @Override
  public Mono<Offsets> offsets(TopicPartition partition) {
    return store.offsets(partition);
  }

  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    return store.read(partition, spec, budget).doOnNext(batches);
  }

  @Override
  public Mono<TimestampOffset> offsetFor(
      TopicPartition partition, long timestamp, Isolation isolation) {
    return store.offsetFor(partition, timestamp, isolation);
  }
}
