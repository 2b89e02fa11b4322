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
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;

/**
 * Topics in memory, outside the heap ({@link DirectMemory}): they end with the process. Nothing is
 * dropped: a full log refuses what is appended, and is read as before.
 */
public final class MemoryTopicLog implements TopicLog {
  private static final Logger LOG = LoggerFactory.getLogger(MemoryTopicLog.class);

  private final MemoryStore store = new MemoryStore();
  private final KnownTopics topics = new KnownTopics();
  private final Map<TopicPartition, Producers> producers = new ConcurrentHashMap<>();
  private final Map<TopicPartition, DirectMemory> memory = new ConcurrentHashMap<>();
  private final AtomicBoolean told = new AtomicBoolean();
  private final DirectMemory.Room room;

  /** Above all that an earlier process has given, whose producers may still be there. */
  private final long firstProducerId = TimeUnit.MILLISECONDS.toMicros(System.currentTimeMillis());

  private final AtomicLong producerIds = new AtomicLong(firstProducerId);

  /** Of three quarters of {@code -XX:MaxDirectMemorySize}: the network needs the rest. */
  public MemoryTopicLog() {
    this(DirectMemory.limit() / 4 * 3);
  }

  /**
   * @param maxBytes that all batches together may take, {@code >= 1}
   */
  public MemoryTopicLog(long maxBytes) {
    if (maxBytes < 1) {
      throw new IllegalArgumentException("maxBytes: " + maxBytes + " (expected: >= 1)");
    }
    this.room = new DirectMemory.Room(maxBytes);
  }

  @Override
  public PartitionStore store() {
    return store;
  }

  @Override
  public Mono<Map<String, Integer>> topics() {
    return topics.all();
  }

  @Override
  public Mono<Map<String, Integer>> topics(Set<String> names) {
    return topics.of(names);
  }

  @Override
  public Mono<Integer> create(String topic, int partitions) {
    return Mono.fromSupplier(
        () ->
            topics.make(
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
              if (!topics.has(partition)) {
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
            })
        .onErrorResume(
            DirectMemory.FullException.class, full -> Mono.fromSupplier(() -> full(full)));
  }

  private Appended full(DirectMemory.FullException full) {
    if (!told.getAndSet(true)) {
      LOG.warn("{}: from now on batches for which there is no room are refused", full.getMessage());
    }
    return Appended.refused(Appended.Outcome.NO_ROOM);
  }

  /** Under the lock of the partition's log. */
  private ByteBuffer keep(TopicPartition partition, ByteBuffer bytes) {
    return memory.computeIfAbsent(partition, p -> new DirectMemory(room)).keep(bytes);
  }

  @Override
  public Mono<Long> newProducerId() {
    return Mono.fromSupplier(producerIds::getAndIncrement);
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
            boolean full = size() > MOST;
            forgotten |= full;
            return full;
          }
        };

    /** Whether somebody who wrote here may be unknown. */
    private boolean forgotten; // guarded by this

    Producers(TopicPartition partition) {
      this.partition = partition;
    }

    synchronized Appended append(ProducedBatch batch) {
      @Nullable ProducerState state = states.get(batch.producerId());
      boolean ofBefore = batch.producerId() < firstProducerId;
      Decision decision = ProducerState.decide(state, batch, forgotten || ofBefore);
      if (decision.verdict() != Verdict.NEXT) {
        return Appended.of(decision);
      }
      // Remembered once there was room for it, and before readers are woken, who may come back
      // here on this thread.
      return Appended.written(
          store.append(
              partition,
              base -> {
                ByteBuffer kept = keep(partition, batch.at(base));
                states.put(batch.producerId(), ProducerState.after(state, batch, base));
                return kept;
              },
              batch.recordCount(),
              batch.maxTimestamp()));
    }
  }
}
