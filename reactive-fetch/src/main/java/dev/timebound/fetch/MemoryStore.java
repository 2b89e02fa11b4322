package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import java.nio.ByteBuffer;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Partitions in memory: for tests, and where losing them with the process is no loss. Appends wake
 * waiting fetches. Batches are kept as they are given, and handed out without a copy. Thread-safe.
 */
public final class MemoryStore implements PartitionStore {
  private final Map<TopicPartition, MemoryLog> logs = new ConcurrentHashMap<>();

  /**
   * Makes a topic's partitions, from 0 on; those that are there stay as they are.
   *
   * @param partitions {@code >= 1}
   */
  public void createTopic(String topic, int partitions) {
    for (int i = 0; i < Settings.atLeast("partitions", partitions, 1); i++) {
      logs.computeIfAbsent(new TopicPartition(topic, i), p -> new MemoryLog());
    }
  }

  /**
   * Appends a batch; readers see it when this returns.
   *
   * @param records how many offsets it takes, {@code >= 1}
   * @param maxTimestamp milliseconds since 1970; −1 for none
   * @return its base offset
   * @throws IllegalArgumentException where there is no such partition
   */
  public long append(TopicPartition partition, ByteBuffer bytes, int records, long maxTimestamp) {
    return append(partition, base -> bytes, records, maxTimestamp);
  }

  /** As before, of a batch whose bytes tell its base offset. The function runs under a lock. */
  public long append(
      TopicPartition partition, LongFunction<ByteBuffer> bytes, int records, long maxTimestamp) {
    return log(partition).append(bytes, records, maxTimestamp);
  }

  /**
   * Appends a batch of a producer's transaction, which its first batch opens: READ_COMMITTED
   * readers see it, and all that follows it, once it has ended.
   */
  public long appendTransactional(
      TopicPartition partition,
      long producerId,
      LongFunction<ByteBuffer> bytes,
      int records,
      long maxTimestamp) {
    return log(partition).appendOf(producerId, bytes, records, maxTimestamp);
  }

  /**
   * Ends a producer's transaction on a partition by a marker, which takes one offset.
   *
   * @return the marker's offset
   * @throws IllegalStateException where the producer has none open
   */
  public long endTransaction(
      TopicPartition partition,
      long producerId,
      boolean commit,
      LongFunction<ByteBuffer> marker,
      long timestamp) {
    return log(partition).endOf(producerId, commit, marker, timestamp);
  }

  /**
   * Moves the partition's start up to an offset; batches that end before it are dropped. An offset
   * before the start changes nothing.
   *
   * @throws IllegalArgumentException where it lies past the high watermark
   */
  public void deleteBefore(TopicPartition partition, long offset) {
    log(partition).deleteBefore(offset);
  }

  @Override
  public Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked) {
    return Mono.fromSupplier(
        () -> {
          Set<TopicPartition> found = new LinkedHashSet<>(asked);
          found.retainAll(logs.keySet());
          return found;
        });
  }

  @Override
  public Mono<Offsets> offsets(TopicPartition partition) {
    return Mono.fromSupplier(() -> log(partition).offsets());
  }

  /** All is in memory: the budget is of no account. */
  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    return Flux.defer(() -> Flux.fromIterable(log(partition).read(spec)));
  }

  /** As exact as batches are: the first offset of the first batch with a record at or after it. */
  @Override
  public Mono<TimestampOffset> offsetFor(
      TopicPartition partition, long timestamp, Isolation isolation) {
    return Mono.fromSupplier(() -> log(partition).offsetFor(timestamp, isolation));
  }

  @Override
  public Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
    MemoryLog log = logs.get(partition);
    return log == null ? Optional.empty() : Optional.of(log.listen(wake));
  }

  /** Fetches that wait for an append to the partition. */
  int listeners(TopicPartition partition) {
    return log(partition).listeners();
  }

  private MemoryLog log(TopicPartition partition) {
    @Nullable MemoryLog log = logs.get(Objects.requireNonNull(partition, "partition"));
    if (log == null) {
      throw Settings.refused("partition", partition, "one that was created");
    }
    return log;
  }
}
