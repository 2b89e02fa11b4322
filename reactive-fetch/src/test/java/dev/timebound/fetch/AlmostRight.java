package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.kit.StoreUnderTest;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Flux;

/**
 * A store in memory that keeps the contract of stores in all, until something of it is overridden:
 * what the contract's tests are tried against.
 */
abstract class AlmostRight extends ForwardingStore {
  final MemoryStore memory;
  final Set<TopicPartition> stalled = ConcurrentHashMap.newKeySet();
  final AtomicInteger held = new AtomicInteger();

  AlmostRight() {
    this(new MemoryStore());
  }

  private AlmostRight(MemoryStore memory) {
    super(memory);
    this.memory = memory;
  }

  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    return Flux.defer(
        () -> stalled.contains(partition) ? Flux.never() : super.read(partition, spec, budget));
  }

  /**
   * @param longest see {@link StoreUnderTest#longest}
   */
  StoreUnderTest underTest(Duration longest) {
    return new UnderTest(longest);
  }

  private final class UnderTest implements StoreUnderTest {
    private final AtomicInteger topics = new AtomicInteger();
    private final Duration longest;

    UnderTest(Duration longest) {
      this.longest = longest;
    }

    @Override
    public PartitionStore store() {
      return AlmostRight.this;
    }

    @Override
    public TopicPartition newPartition() {
      TopicPartition partition = new TopicPartition("topic-" + topics.getAndIncrement(), 0);
      memory.createTopic(partition.topic(), 1);
      return partition;
    }

    @Override
    public long append(TopicPartition partition, ByteBuffer bytes, int records, long maxTimestamp) {
      return memory.append(partition, bytes, records, maxTimestamp);
    }

    @Override
    public boolean hasTransactions() {
      return true;
    }

    @Override
    public long appendTransactional(
        TopicPartition partition, long producerId, ByteBuffer bytes, int records) {
      return memory.appendTransactional(partition, producerId, base -> bytes, records, 1);
    }

    @Override
    public long endTransaction(TopicPartition partition, long producerId, boolean commit) {
      return memory.endTransaction(
          partition, producerId, commit, base -> ByteBuffer.allocate(10), 1);
    }

    @Override
    public boolean hasRetention() {
      return true;
    }

    @Override
    public void deleteBefore(TopicPartition partition, long offset) {
      memory.deleteBefore(partition, offset);
    }

    @Override
    public boolean canStall() {
      return true;
    }

    @Override
    public void stall(TopicPartition partition) {
      stalled.add(partition);
    }

    @Override
    public void thaw(TopicPartition partition) {
      stalled.remove(partition);
    }

    @Override
    public Duration longest() {
      return longest;
    }

    @Override
    public int held() {
      return held.get();
    }

    @Override
    public void close() {}
  }
}
