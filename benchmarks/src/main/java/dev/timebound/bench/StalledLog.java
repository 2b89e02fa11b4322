package dev.timebound.bench;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.ForwardingStore;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.samples.kafka.log.Appended;
import dev.timebound.samples.kafka.log.MemoryTopicLog;
import dev.timebound.samples.kafka.log.ProducedBatch;
import dev.timebound.samples.kafka.log.TopicLog;
import java.util.Map;
import java.util.Set;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Topics in memory; no read of the records of a partition 0 ever ends, whatever its budget. */
final class StalledLog implements TopicLog {
  private final MemoryTopicLog log = new MemoryTopicLog();
  private final PartitionStore store = new Store(log.store());

  @Override
  public PartitionStore store() {
    return store;
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
    return log.append(partition, batch);
  }

  @Override
  public Mono<Long> newProducerId() {
    return log.newProducerId();
  }

  private static final class Store extends ForwardingStore {
    Store(PartitionStore memory) {
      super(memory);
    }

    @Override
    public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
      return partition.partition() == 0 ? Flux.never() : super.read(partition, spec, budget);
    }
  }
}
