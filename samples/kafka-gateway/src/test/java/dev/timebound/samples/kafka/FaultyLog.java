package dev.timebound.samples.kafka;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.fetch.ForwardingStore;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.samples.kafka.log.Appended;
import dev.timebound.samples.kafka.log.MemoryTopicLog;
import dev.timebound.samples.kafka.log.ProducedBatch;
import dev.timebound.samples.kafka.log.TopicLog;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A log in memory of which partitions can be made never to answer. */
final class FaultyLog implements TopicLog {
  private final MemoryTopicLog log = new MemoryTopicLog();
  private final Set<TopicPartition> reads = ConcurrentHashMap.newKeySet();
  private final Set<TopicPartition> offsets = ConcurrentHashMap.newKeySet();
  private final Set<TopicPartition> appends = ConcurrentHashMap.newKeySet();
  private final Set<TopicPartition> stalledAppends = ConcurrentHashMap.newKeySet();
  private final AtomicInteger hanging = new AtomicInteger();
  private final AtomicInteger stalls = new AtomicInteger();
  private final AtomicInteger begun = new AtomicInteger();
  private final AtomicInteger waiting = new AtomicInteger();
  private volatile Duration timeOfStalled = Duration.ZERO;

  /** Its records are asked for in vain. */
  void stallReads(String topic, int partition) {
    reads.add(new TopicPartition(topic, partition));
  }

  /** Where it begins and ends is asked in vain. */
  void stallOffsets(String topic, int partition) {
    offsets.add(new TopicPartition(topic, partition));
  }

  /** Nothing can be appended to it. */
  void failAppends(String topic, int partition) {
    appends.add(new TopicPartition(topic, partition));
  }

  /** What is appended to it never ends. */
  void stallAppends(String topic, int partition) {
    stalledAppends.add(new TopicPartition(topic, partition));
  }

  void heal() {
    appends.clear();
    stalledAppends.clear();
    reads.clear();
    offsets.clear();
  }

  /** Reads begun so far. */
  int reads() {
    return begun.get();
  }

  /** Reads and appends that hung, so far. */
  int stalls() {
    return stalls.get();
  }

  /** How long the append that hung last was given. */
  Duration timeOfStalled() {
    return timeOfStalled;
  }

  /** Reads and appends that hang now. */
  int hanging() {
    return hanging.get();
  }

  /** Long polls that wait for an append now, one for each of their partitions. */
  int waiting() {
    return waiting.get();
  }

  @Override
  public PartitionStore store() {
    return new Store(log.store());
  }

  @Override
  public Mono<Map<String, Integer>> topics() {
    return log.topics();
  }

  @Override
  public Mono<Map<String, Integer>> topics(Set<String> names) {
    return log.topics(names);
  }

  @Override
  public Mono<Integer> create(String topic, int partitions) {
    return log.create(topic, partitions);
  }

  @Override
  public Mono<Appended> append(TopicPartition partition, ProducedBatch batch) {
    if (stalledAppends.contains(partition)) {
      return Mono.deferContextual(
          context -> {
            timeOfStalled = Deadlines.current(context).remaining();
            return this.<Appended>hang().next();
          });
    }
    return appends.contains(partition)
        ? Mono.error(new IllegalStateException("the disk of " + partition + " is full"))
        : log.append(partition, batch);
  }

  @Override
  public Mono<Long> newProducerId() {
    return log.newProducerId();
  }

  private <T> Flux<T> hang() {
    return Flux.<T>never()
        .doOnSubscribe(
            s -> {
              stalls.incrementAndGet();
              hanging.incrementAndGet();
            })
        .doOnCancel(hanging::decrementAndGet);
  }

  private final class Store extends ForwardingStore {
    Store(PartitionStore store) {
      super(store);
    }

    @Override
    public Mono<Offsets> offsets(TopicPartition partition) {
      return Mono.defer(
          () ->
              offsets.contains(partition)
                  ? FaultyLog.this.<Offsets>hang().next()
                  : super.offsets(partition));
    }

    @Override
    public Mono<Offsets> authoritativeOffsets(TopicPartition partition) {
      return offsets(partition);
    }

    @Override
    public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
      return Flux.defer(
          () -> {
            begun.incrementAndGet();
            return reads.contains(partition) ? hang() : super.read(partition, spec, budget);
          });
    }

    @Override
    public Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
      return super.onAppend(partition, wake)
          .map(
              listening -> {
                waiting.incrementAndGet();
                AtomicInteger once = new AtomicInteger();
                return () -> {
                  if (once.getAndIncrement() == 0) {
                    waiting.decrementAndGet();
                    listening.dispose();
                  }
                };
              });
    }
  }
}
