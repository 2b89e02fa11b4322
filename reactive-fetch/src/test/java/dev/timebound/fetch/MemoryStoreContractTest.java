package dev.timebound.fetch;

import dev.timebound.fetch.kit.PartitionStoreContract;
import dev.timebound.fetch.kit.StoreUnderTest;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.DisplayName;

@DisplayName("The memory store keeps the contract")
class MemoryStoreContractTest extends PartitionStoreContract {
  @Override
  protected StoreUnderTest open() {
    return new InMemory();
  }

  private static final class InMemory implements StoreUnderTest {
    private final MemoryStore store = new MemoryStore();
    private int topics;

    @Override
    public PartitionStore store() {
      return store;
    }

    @Override
    public TopicPartition newPartition() {
      String topic = "topic-" + topics++;
      store.createTopic(topic, 1);
      return new TopicPartition(topic, 0);
    }

    @Override
    public long append(TopicPartition partition, ByteBuffer bytes, int records, long maxTimestamp) {
      return store.append(partition, bytes, records, maxTimestamp);
    }

    @Override
    public boolean hasTransactions() {
      return true;
    }

    @Override
    public long appendTransactional(
        TopicPartition partition, long producerId, ByteBuffer bytes, int records) {
      return store.appendTransactional(partition, producerId, base -> bytes, records, 1);
    }

    @Override
    public long endTransaction(TopicPartition partition, long producerId, boolean commit) {
      return store.endTransaction(
          partition, producerId, commit, base -> ByteBuffer.allocate(10), 1);
    }

    @Override
    public boolean hasRetention() {
      return true;
    }

    @Override
    public void deleteBefore(TopicPartition partition, long offset) {
      store.deleteBefore(partition, offset);
    }

    @Override
    public void close() {}
  }
}
