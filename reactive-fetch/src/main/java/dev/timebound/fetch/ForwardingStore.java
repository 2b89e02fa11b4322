package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A store around another one, to which it hands on whatever is not overridden, the calls that have
 * a default among them: one that is left out would change what the other says of itself. {@link
 * #authoritativeOffsets} are the other's own, not {@link #offsets} as they are overridden here: who
 * changes one has the other to think of. Thread-safe where the other is.
 */
public abstract class ForwardingStore implements PartitionStore {
  private final PartitionStore store;

  protected ForwardingStore(PartitionStore store) {
    this.store = Objects.requireNonNull(store, "store");
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
  public Mono<Offsets> authoritativeOffsets(TopicPartition partition) {
    return store.authoritativeOffsets(partition);
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

  @Override
  public boolean finishesInBackground() {
    return store.finishesInBackground();
  }
}
