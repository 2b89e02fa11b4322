package dev.timebound.fetch.s3;

import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.fetch.kit.PartitionStoreContract;
import dev.timebound.fetch.kit.StoreUnderTest;
import java.nio.ByteBuffer;
import java.time.Duration;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;

@DisplayName("The store in S3 keeps the contract")
class S3StoreContractTest {
  @Nested
  @DisplayName("by the process that wrote")
  class ByItsWriter extends PartitionStoreContract {
    @Override
    protected StoreUnderTest open() {
      return new InS3(new S3Bench(), false);
    }
  }

  @Nested
  @DisplayName("by another process, which keeps nothing in memory, and fetches few bytes at first")
  class ByAnother extends PartitionStoreContract {
    @Override
    protected StoreUnderTest open() {
      return new InS3(new S3Bench(), true);
    }
  }

  private static final class InS3 implements StoreUnderTest {
    private final S3Bench bench;
    private final S3Store reader;

    InS3(S3Bench bench, boolean other) {
      this.bench = bench;
      this.reader =
          other
              ? bench.store(bench.client, all -> all.indexCacheBytes(0).firstReadBytes(16))
              : bench.store;
    }

    @Override
    public PartitionStore store() {
      return reader;
    }

    @Override
    public TopicPartition newPartition() {
      return bench.newPartition();
    }

    @Override
    public long append(TopicPartition partition, ByteBuffer bytes, int records, long maxTimestamp) {
      return S3Bench.got(bench.store.append(partition, bytes, records, maxTimestamp));
    }

    @Override
    public boolean hasRetention() {
      return true;
    }

    @Override
    public void deleteBefore(TopicPartition partition, long offset) {
      bench.store.deleteBefore(partition, offset).block(S3Bench.BOUND);
    }

    @Override
    public boolean canStall() {
      return true;
    }

    @Override
    public void stall(TopicPartition partition) {
      bench.stall(partition);
    }

    @Override
    public void thaw(TopicPartition partition) {
      bench.thaw(partition);
    }

    @Override
    public Duration maxWait() {
      return Duration.ofSeconds(4);
    }

    @Override
    public int held() {
      return bench.requests.open();
    }

    @Override
    public void close() {
      bench.close();
    }
  }
}
