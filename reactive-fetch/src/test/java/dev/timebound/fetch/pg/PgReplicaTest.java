package dev.timebound.fetch.pg;

import static dev.timebound.fetch.Eventually.eventually;
import static dev.timebound.fetch.pg.PgBench.got;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.fetch.ErrorCode;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.ListedOffset;
import dev.timebound.fetch.OffsetQuery;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.PartitionData;
import dev.timebound.fetch.PartitionFetcher;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.SharePolicy;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.test.PostgresReplicaSet;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("FE-12 the store in Postgres with a standby")
class PgReplicaTest {
  private final PgBench bench = PgBench.withReplica(PostgresReplicaSet.shared());
  // nothing is cut for others' sake
  private final PartitionFetcher fetcher =
      PartitionFetcher.builder(bench.store).policy(SharePolicy.HALVING).build();

  @BeforeEach
  void warm() {
    bench.database.start();
    eventually(
        () -> assertThat(bench.meters.get("timebound.pg.pool.idle").gauge().value()).isPositive());
  }

  @AfterEach
  void nothingIsLeft() {
    fetcher.close();
    bench.close();
  }

  private PartitionData fetch(TopicPartition partition, long offset, Isolation isolation) {
    return got(fetcher.fetch(
            FetchRequest.builder()
                .maxWait(Duration.ofMillis(500))
                .isolation(isolation)
                .partition(partition, offset)
                .build()))
        .partition(partition);
  }

  private PartitionData fetch(TopicPartition partition, long offset) {
    return fetch(partition, offset, Isolation.READ_UNCOMMITTED);
  }

  private static List<Long> bases(PartitionData data) {
    return data.batches().stream().map(RecordBatch::baseOffset).toList();
  }

  @Test
  @DisplayName("batches come from it, where the partition ends from the writer")
  void fromTheStandby() {
    TopicPartition partition = bench.filled(4, 10);
    bench.servers.standby().awaitReplay();
    PartitionData data = fetch(partition, 1);
    assertThat(bases(data)).containsExactly(1L, 2L, 3L);
    assertThat(data.highWatermark()).isEqualTo(4);
    eventually(() -> assertThat(bench.routes("reader", "proved")).isOne());
    assertThat(bench.routes("writer", "writer_requested")).isGreaterThanOrEqualTo(3);
  }

  @Test
  @DisplayName(
      "FE-12 one that lags makes no valid offset look out of range, and no end a false one")
  void lags() {
    TopicPartition partition = bench.filled(2, 10);
    bench.servers.standby().awaitReplay();
    bench.servers.standby().pauseReplay();
    bench.append(partition, 3, 10);
    assertThat(got(bench.store.offsets(partition))).isEqualTo(Offsets.of(0, 5, 5));
    PartitionData behind = fetch(partition, 3);
    assertThat(behind.error()).isEqualTo(ErrorCode.NONE);
    assertThat(bases(behind)).as("the writer is asked").containsExactly(3L, 4L);
    PartitionData half = fetch(partition, 0);
    assertThat(bases(half)).startsWith(0L, 1L);
    assertThat(half.highWatermark()).as("there is more").isEqualTo(5);
    assertThat(bases(fetch(partition, 2))).containsExactly(2L, 3L, 4L);
    PartitionData end = fetch(partition, 5);
    assertThat(end.error()).isEqualTo(ErrorCode.NONE);
    assertThat(end.batches()).isEmpty();
    assertThat(fetch(partition, 6).error()).isEqualTo(ErrorCode.OFFSET_OUT_OF_RANGE);
    assertThat(listed(OffsetQuery.latest(partition)).offset()).isEqualTo(5);
    assertThat(listed(OffsetQuery.at(partition, 1002)).offset()).isEqualTo(4);
  }

  private ListedOffset listed(OffsetQuery query) {
    return got(fetcher.listOffsets(List.of(query), Isolation.READ_UNCOMMITTED)).get(0);
  }

  @Test
  @DisplayName("FE-12 nor an unknown topic of one that was just made")
  void madeJustNow() {
    bench.servers.standby().pauseReplay();
    TopicPartition partition = bench.filled(2, 10);
    PgStore other = got(PgStore.builder(bench.database).open());
    try (PartitionFetcher fetching =
        PartitionFetcher.builder(other).policy(SharePolicy.HALVING).build()) {
      PartitionData data =
          got(fetching.fetch(FetchRequest.builder().partition(partition, 0).build()))
              .partition(partition);
      assertThat(data.error()).isEqualTo(ErrorCode.NONE);
      assertThat(bases(data)).containsExactly(0L, 1L);
    } finally {
      other.close();
    }
  }

  @Test
  @DisplayName(
      "one that lags shows of a transaction no record that was aborted since as a good one")
  void lagsInTransaction() {
    TopicPartition partition = bench.newPartition();
    got(bench.store.append(partition, ByteBuffer.allocate(10), 1, 1));
    got(bench.store.appendTransactional(partition, 7, b -> ByteBuffer.allocate(10), 1, 1));
    bench.servers.standby().awaitReplay();
    bench.servers.standby().pauseReplay();
    got(bench.store.endTransaction(partition, 7, false, b -> ByteBuffer.allocate(10), 1));
    PartitionData first = fetch(partition, 0, Isolation.READ_COMMITTED);
    assertThat(bases(first)).as("what was stable then").containsExactly(0L);
    assertThat(first.lastStableOffset()).isEqualTo(3);
    PartitionData rest = fetch(partition, 1, Isolation.READ_COMMITTED);
    assertThat(bases(rest)).containsExactly(1L, 2L);
    assertThat(rest.batches().get(0).aborted()).hasSize(1);
  }

  @Test
  @DisplayName("what retention has moved on is out of range at once, whatever it still has")
  void retention() {
    TopicPartition partition = bench.filled(4, 10);
    bench.servers.standby().awaitReplay();
    bench.servers.standby().pauseReplay();
    bench.store.deleteBefore(partition, 2).block(PgBench.BOUND);
    assertThat(fetch(partition, 1).error()).isEqualTo(ErrorCode.OFFSET_OUT_OF_RANGE);
    assertThat(bases(fetch(partition, 2))).containsExactly(2L, 3L);
  }

  @Test
  @DisplayName("one that is frozen costs its proof, and the writer serves")
  void frozen() {
    TopicPartition partition = bench.filled(4, 10);
    bench.servers.standby().freeze();
    assertThat(bases(fetch(partition, 0))).containsExactly(0L, 1L, 2L, 3L);
  }
}
