package dev.timebound.fetch.pg;

import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.fetch.kit.PartitionStoreContract;
import dev.timebound.fetch.kit.StoreUnderTest;
import dev.timebound.test.PostgresReplicaSet;
import java.nio.ByteBuffer;
import java.time.Duration;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import reactor.core.publisher.Mono;

@DisplayName("The store in Postgres keeps the contract")
class PgStoreContractTest {
  @Nested
  @DisplayName("on the writer")
  class OnTheWriter extends PartitionStoreContract {
    @Override
    protected StoreUnderTest open() {
      return new InPostgres(PgBench.on(PostgresReplicaSet.shared()), false);
    }
  }

  @Nested
  @DisplayName("with batches from a standby, which has what was appended")
  class WithAReplica extends PartitionStoreContract {
    @Override
    protected StoreUnderTest open() {
      return new InPostgres(PgBench.withReplica(PostgresReplicaSet.shared()), true);
    }
  }

  private record InPostgres(PgBench bench, boolean replica) implements StoreUnderTest {
    @Override
    public PartitionStore store() {
      return bench.store;
    }

    @Override
    public TopicPartition newPartition() {
      return bench.newPartition();
    }

    @Override
    public long append(TopicPartition partition, ByteBuffer bytes, int records, long maxTimestamp) {
      return replayed(bench.store.append(partition, bytes, records, maxTimestamp));
    }

    private long replayed(Mono<Long> append) {
      long offset = PgBench.got(append);
      if (replica) {
        bench.servers.standby().awaitReplay();
      }
      return offset;
    }

    @Override
    public boolean hasTransactions() {
      return true;
    }

    @Override
    public long appendTransactional(
        TopicPartition partition, long producerId, ByteBuffer bytes, int records) {
      return replayed(
          bench.store.appendTransactional(partition, producerId, base -> bytes, records, 1));
    }

    @Override
    public long endTransaction(TopicPartition partition, long producerId, boolean commit) {
      return replayed(
          bench.store.endTransaction(
              partition, producerId, commit, base -> ByteBuffer.allocate(10), 1));
    }

    @Override
    public boolean hasRetention() {
      return true;
    }

    @Override
    public void deleteBefore(TopicPartition partition, long offset) {
      bench.store.deleteBefore(partition, offset).block(PgBench.BOUND);
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
      if (replica) {
        bench.servers.standby().awaitReplay(); // the lock is held there too until then
      }
    }

    @Override
    public Duration maxWait() {
      return Duration.ofSeconds(2);
    }

    @Override
    public int held() {
      return bench.acquired() + bench.running().size();
    }

    @Override
    public void close() {
      bench.close();
    }
  }
}
