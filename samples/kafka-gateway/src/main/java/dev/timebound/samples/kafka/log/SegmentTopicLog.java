package dev.timebound.samples.kafka.log;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.fetch.segments.SegmentStore;
import dev.timebound.fetch.segments.SegmentStoreBuilder;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Topics in segment files on a local disk: they outlive the process. One gateway has a directory
 * open at a time. Thread-safe.
 */
public final class SegmentTopicLog implements TopicLog {
  /** Its offsets are the producers' ids; no topic of a client may have such a name. */
  private static final TopicPartition IDS = new TopicPartition("producer ids", 0);

  /** Ids taken at once; those that were not used when the process ends are lost. */
  private static final int IDS_AT_ONCE = 1_000;

  /**
   * How far back producers' last batches are looked for when a partition is opened: what a client
   * sends again was among the last that it sent.
   */
  private static final int LOOKED_THROUGH = 20_000;

  private static final Duration PATIENCE = Duration.ofMinutes(5);
  private static final int AT_ONCE = 8;

  private final SegmentStore store;
  private final KnownTopics topics = new KnownTopics();
  private final Map<TopicPartition, SegmentProducers> producers = new ConcurrentHashMap<>();
  private final Ids ids = new Ids();

  /** Of those given by this one; set before it is handed out. */
  private volatile long firstId;

  private SegmentTopicLog(SegmentStore store) {
    this.store = store;
  }

  /** Opens what the settings name; {@link #close} gives it free. */
  public static Mono<SegmentTopicLog> open(SegmentStoreBuilder settings) {
    return settings
        .open()
        .flatMap(
            store -> {
              SegmentTopicLog log = new SegmentTopicLog(store);
              return log.begin()
                  .thenReturn(log)
                  .onErrorResume(e -> store.close().then(Mono.error(e)));
            });
  }

  private Mono<Void> begin() {
    return store
        .createTopic(IDS.topic(), 1)
        .then(store.offsets(IDS))
        .doOnNext(ids -> firstId = ids.highWatermark())
        .thenMany(Flux.fromIterable(store.partitions()))
        .filter(partition -> !partition.topic().equals(IDS.topic()))
        .doOnNext(each -> topics.atLeast(each.topic(), each.partition() + 1))
        .flatMap(this::remember, AT_ONCE)
        .then();
  }

  /** What the partition's producers wrote last. */
  private Mono<Void> remember(TopicPartition partition) {
    SegmentProducers known = producers(partition);
    return store
        .offsets(partition)
        .flatMapMany(
            offsets -> {
              long from = Math.max(offsets.logStart(), offsets.highWatermark() - LOOKED_THROUGH);
              if (from > 0) {
                known.foundInPart();
              }
              ReadSpec all =
                  new ReadSpec(from, Integer.MAX_VALUE, true, Isolation.READ_UNCOMMITTED);
              return store.read(partition, all, Deadline.after(PATIENCE));
            })
        .doOnNext(batch -> known.found(ProducedBatch.stored(batch), batch.baseOffset()))
        .then();
  }

  private SegmentProducers producers(TopicPartition partition) {
    return producers.computeIfAbsent(partition, id -> new SegmentProducers(store, id, firstId));
  }

  /** What was appended is forced to the disk, and the directory is given free. */
  public Mono<Void> close() {
    return store.close();
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
    return Mono.defer(
        () -> {
          @Nullable Integer there = topics.partitions(topic);
          return there != null
              ? Mono.just(there)
              : store.createTopic(topic, partitions).then(Mono.fromSupplier(() -> counted(topic)));
        });
  }

  /** Of two that make a topic at once the one with more partitions has its way. */
  private Integer counted(String topic) {
    int partitions =
        (int) store.partitions().stream().filter(each -> each.topic().equals(topic)).count();
    return topics.atLeast(topic, partitions);
  }

  @Override
  public Mono<Appended> append(TopicPartition partition, ProducedBatch batch) {
    return Mono.defer(
        () -> {
          if (!topics.has(partition)) {
            return Mono.just(Appended.refused(Appended.Outcome.UNKNOWN_PARTITION));
          }
          return batch.isIdempotent()
              ? producers(partition).append(batch)
              : store
                  .append(partition, batch::at, batch.recordCount(), batch.maxTimestamp())
                  .map(Appended::written);
        });
  }

  @Override
  public Mono<Long> newProducerId() {
    return Mono.defer(
        () -> {
          @Nullable Long left = ids.next();
          return left != null
              ? Mono.just(left)
              : store
                  .append(IDS, base -> ByteBuffer.allocate(1), IDS_AT_ONCE, -1)
                  .map(base -> ids.of(base, base + IDS_AT_ONCE));
        });
  }

  /** Of those that were taken, the ones not yet given. */
  private static final class Ids {
    private long next;
    private long end;

    synchronized @Nullable Long next() {
      return next < end ? next++ : null;
    }

    synchronized long of(long from, long until) {
      next = from + 1;
      end = until;
      return from;
    }
  }
}
