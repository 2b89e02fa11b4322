package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import java.util.Optional;
import java.util.Set;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Hands everything on, to be overridden in part. */
class PartitionStoreAdapter implements PartitionStore {
  private final PartitionStore store;

  PartitionStoreAdapter(PartitionStore store) {
    this.store = store;
  }

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
    return store.read(partition, spec, budget);
  }

  @Override
  public Mono<TimestampOffset> offsetFor(
      TopicPartition partition, long timestamp, Isolation isolation) {
    return store.offsetFor(partition, timestamp, isolation);
  }

  @Override
  public Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
    return store.onAppend(partition, wake);
  }
}
