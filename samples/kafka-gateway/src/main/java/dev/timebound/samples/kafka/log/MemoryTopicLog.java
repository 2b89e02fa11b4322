package dev.timebound.samples.kafka.log;

import dev.timebound.fetch.MemoryStore;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.samples.kafka.log.ProducerState.Decision;
import dev.timebound.samples.kafka.log.ProducerState.Verdict;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** Topics in memory, outside the heap ({@link DirectMemory}): they end with the process. */
public final class MemoryTopicLog implements TopicLog {
  private final MemoryStore store = new MemoryStore();
  private final Map<String, Integer> topics = new ConcurrentHashMap<>();
  private final Map<TopicPartition, Producers> producers = new ConcurrentHashMap<>();
  private final Map<TopicPartition, DirectMemory> memory = new ConcurrentHashMap<>();
  private final AtomicLong producerIds = new AtomicLong();

  @Override
  public PartitionStore store() {
    return store;
  }

  @Override
  public Mono<Map<String, Integer>> topics() {
    return Mono.fromSupplier(() -> Map.copyOf(topics));
  }

  @Override
  public Mono<Map<String, Integer>> topics(Set<String> names) {
    return Mono.fromSupplier(
        () ->
            names.stream()
                .filter(topics::containsKey)
                .collect(Collectors.toMap(name -> name, topics::get)));
  }

  @Override
  public Mono<Integer> create(String topic, int partitions) {
    return Mono.fromSupplier(
        () ->
            topics.computeIfAbsent(
                topic,
                name -> {
                  store.createTopic(name, partitions);
                  return partitions;
                }));
  }

  @Override
  public Mono<Appended> append(TopicPartition partition, ProducedBatch batch) {
    return Mono.fromSupplier(
        () -> {
          Integer partitions = topics.get(partition.topic());
          if (partitions == null || partition.partition() >= partitions) {
            return Appended.refused(Appended.Outcome.UNKNOWN_PARTITION);
          }
          return batch.isIdempotent()
              ? producers.computeIfAbsent(partition, Producers::new).append(batch)
              : Appended.written(
                  store.append(
                      partition,
                      base -> keep(partition, batch.at(base)),
                      batch.recordCount(),
                      batch.maxTimestamp()));
        });
  }

  /** Under the lock of the partition's log. */
  private ByteBuffer keep(TopicPartition partition, ByteBuffer bytes) {
    return memory.computeIfAbsent(partition, p -> new DirectMemory()).keep(bytes);
  }

  @Override
  public Mono<Long> newProducerId() {
    return Mono.fromSupplier(producerIds::incrementAndGet);
  }

  /** The idempotent producers of one partition, those that wrote last. */
  private final class Producers {
    private static final int MOST = 1_000;

    private final TopicPartition partition;
    private final Map<Long, ProducerState> states =
        new LinkedHashMap<>(16, 0.75f, true) {
          private static final long serialVersionUID = 1L;

          @Override
          protected boolean removeEldestEntry(Map.Entry<Long, ProducerState> eldest) {
            return size() > MOST;
          }
        };

    Producers(TopicPartition partition) {
      this.partition = partition;
    }

    synchronized Appended append(ProducedBatch batch) {
      @Nullable ProducerState state = states.get(batch.producerId());
      Decision decision = ProducerState.decide(state, batch);
      if (decision.verdict() != Verdict.NEXT) {
        return Appended.of(decision);
      }
      // remembered before readers are woken, who may come back here on this thread
      return Appended.written(
          store.append(
              partition,
              base -> {
                states.put(batch.producerId(), ProducerState.after(state, batch, base));
                return keep(partition, batch.at(base));
              },
              batch.recordCount(),
              batch.maxTimestamp()));
    }
  }
}
