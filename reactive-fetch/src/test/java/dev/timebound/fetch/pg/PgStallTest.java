package dev.timebound.fetch.pg;

import static dev.timebound.fetch.Eventually.eventually;
import static dev.timebound.fetch.pg.PgBench.BOUND;
import static dev.timebound.fetch.pg.PgBench.got;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.fetch.BoundedStore;
import dev.timebound.fetch.ErrorCode;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.PartitionData;
import dev.timebound.fetch.PartitionFetcher;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.SharePolicy;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresSession;
import io.micrometer.core.instrument.Counter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

@DisplayName("A partition that stalls in Postgres")
class PgStallTest {
  private static final Duration MAX_WAIT = Duration.ofMillis(500);

  private final PgBench bench = PgBench.on(PostgresReplicaSet.shared());
  private final BoundedStore store =
      BoundedStore.builder(bench.store, PgBench.CONNECTIONS - 2).build();

  @AfterEach
  void nothingIsLeft() {
    try {
      eventually(() -> assertThat(store.held() + store.waiting()).as("permits").isZero());
    } finally {
      bench.close(); // whatever happened: the tables that it locks are other tests' too
    }
  }

  private PartitionFetcher fetcher(SharePolicy policy) {
    return PartitionFetcher.builder(store).policy(policy).meters(bench.meters).build();
  }

  private double abandoned(String operation) {
    Counter counter =
        bench
            .meters
            .find("timebound.fetch.read.deadline.exceeded")
            .tags("operation", operation, "stage", "reading")
            .counter();
    return counter == null ? 0 : counter.count();
  }

  /** Where a reader of each partition is. */
  private static final class Consumer {
    private final Map<TopicPartition, Long> positions = new HashMap<>();
    private final Map<TopicPartition, List<Long>> seen = new HashMap<>();

    long position(TopicPartition partition) {
      return positions.getOrDefault(partition, 0L);
    }

    List<Long> seen(TopicPartition partition) {
      return seen.computeIfAbsent(partition, each -> new ArrayList<>());
    }

    /** One round, over once three have a batch. */
    FetchResponse poll(PartitionFetcher fetcher, List<TopicPartition> partitions) {
      FetchRequest.Builder request =
          FetchRequest.builder().maxWait(MAX_WAIT.multipliedBy(2)).minBytes(60);
      partitions.forEach(each -> request.partition(each, position(each)));
      FetchResponse response = got(fetcher.fetch(request.build()));
      for (PartitionData data : response.partitions()) {
        assertThat(data.error()).isEqualTo(ErrorCode.NONE);
        for (RecordBatch batch : data.batches()) {
          seen(data.partition()).add(batch.baseOffset());
          positions.put(data.partition(), batch.nextOffset());
        }
      }
      return response;
    }
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName(
      "FE-10 FE-20 FE-22 the others move on in every round, nothing is lost or left behind")
  void amongOthers(SharePolicy policy) {
    int rounds = 5;
    List<TopicPartition> all = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      all.add(bench.filled(1, 20));
    }
    TopicPartition stalled = all.get(0);
    List<TopicPartition> healthy = all.subList(1, 4);
    Consumer consumer = new Consumer();
    try (PartitionFetcher fetcher = fetcher(policy)) {
      consumer.poll(fetcher, healthy); // connections, plans
      bench.stall(stalled);
      for (int round = 1; round <= rounds; round++) {
        healthy.forEach(each -> bench.append(each, 1, 20));
        FetchResponse response = consumer.poll(fetcher, all);
        assertThat(response.partition(stalled).batches()).isEmpty();
        for (TopicPartition each : healthy) {
          assertThat(response.partition(each).batches()).as("%s, round %s", each, round).hasSize(1);
        }
      }
      assertThat(abandoned("fetch")).isPositive();
      eventually(() -> assertThat(bench.running()).as("statements left running").isEmpty());
      eventually(() -> assertThat(bench.acquired()).isZero());
      bench.thaw(stalled);
      bench.append(stalled, 1, 20);
      while (consumer.position(stalled) < 2) {
        consumer.poll(fetcher, List.of(stalled));
      }
    }
    assertThat(consumer.seen(stalled)).as("all, in order, once").containsExactly(0L, 1L);
    Long[] each = LongStream.rangeClosed(0, rounds).boxed().toArray(Long[]::new);
    healthy.forEach(partition -> assertThat(consumer.seen(partition)).containsExactly(each));
  }

  @Test
  @DisplayName("FE-11 one whose offsets stall answers -1, no error, and its records are not read")
  void offsetsStall() {
    TopicPartition stalled = bench.filled(2, 10);
    TopicPartition healthy = bench.filled(2, 10);
    bench.stallOffsets(stalled);
    try (PartitionFetcher fetcher = fetcher(SharePolicy.HALVING)) {
      FetchResponse response =
          got(
              fetcher.fetch(
                  FetchRequest.builder()
                      .maxWait(MAX_WAIT)
                      .partition(stalled, 0)
                      .partition(healthy, 0)
                      .build()));
      PartitionData none = response.partition(stalled);
      assertThat(none.error()).isEqualTo(ErrorCode.NONE);
      assertThat(none.highWatermark()).isEqualTo(-1);
      assertThat(none.lastStableOffset()).isEqualTo(-1);
      assertThat(none.logStartOffset()).isEqualTo(-1);
      assertThat(none.batches()).isEmpty();
      assertThat(response.partition(healthy).batches()).hasSize(2);
      assertThat(abandoned("offset_stage")).isOne();
    }
    eventually(() -> assertThat(bench.running()).isEmpty());
  }

  @Test
  @DisplayName("FE-5 offsets that take longer than max_wait leave the records their budget")
  void offsetsSlow() {
    TopicPartition partition = bench.filled(2, 10);
    bench.stallOffsets(partition);
    try (PartitionFetcher fetcher = fetcher(SharePolicy.HALVING)) {
      Mono<FetchResponse> answer =
          fetcher
              .fetch(FetchRequest.builder().maxWait(MAX_WAIT).partition(partition, 0).build())
              .cache();
      Disposable fetching = answer.subscribe();
      eventually(() -> assertThat(bench.stuck()).hasSize(1));
      Mono.delay(MAX_WAIT.plusMillis(100)).block(BOUND);
      assertThat(bench.stuck()).as("it goes on").hasSize(1);
      bench.thaw(partition);
      assertThat(got(answer).partition(partition).batches()).hasSize(2);
      eventually(() -> assertThat(fetching.isDisposed()).isTrue());
    }
  }

  @Test
  @DisplayName("FE-24 a read slower than max_wait is not given up at the end of its budget")
  void slow() {
    TopicPartition partition = bench.filled(2, 10);
    bench.stall(partition);
    try (PartitionFetcher fetcher = fetcher(SharePolicy.HALVING)) {
      Mono<FetchResponse> answer =
          fetcher
              .fetch(FetchRequest.builder().maxWait(MAX_WAIT).partition(partition, 0).build())
              .cache();
      Disposable fetching = answer.subscribe();
      Mono.delay(MAX_WAIT.plusMillis(100)).block(BOUND);
      bench.thaw(partition);
      assertThat(got(answer).partition(partition).batches()).hasSize(2);
      eventually(() -> assertThat(fetching.isDisposed()).isTrue());
    }
  }

  @Test
  @DisplayName(
      "FE-22 a client that leaves has its statement cancelled on the server, and the"
          + " connection dropped")
  void clientLeaves() {
    TopicPartition partition = bench.filled(2, 10);
    bench.stall(partition);
    // no deadline ends it within this test's patience
    Duration never = BOUND.multipliedBy(4);
    try (PartitionFetcher fetcher =
        PartitionFetcher.builder(store).extraTime(never).maxReadDeadline(never).build()) {
      Disposable client =
          fetcher
              .fetch(
                  FetchRequest.builder()
                      .maxWait(Duration.ofSeconds(20))
                      .partition(partition, 0)
                      .build())
              .subscribe();
      eventually(() -> assertThat(bench.stuck()).hasSize(1));
      int pid = bench.stuck().get(0).pid();
      client.dispose();
      eventually(() -> assertThat(bench.running()).isEmpty());
      eventually(
          () ->
              assertThat(bench.primary.sessions(bench.application))
                  .extracting(PostgresSession::pid)
                  .doesNotContain(pid));
      eventually(() -> assertThat(bench.acquired()).isZero());
    }
  }

  @Test
  @DisplayName("FE-10 what came before a stall in mid-read is kept, and the watermark covers it")
  void inMidRead() {
    TopicPartition partition = bench.newPartition();
    bench.flood(partition, 8 * Pages.ROWS, 1000);
    PartitionStoreTap tap =
        new PartitionStoreTap(
            store,
            batch -> {
              if (batch.baseOffset() == 5) {
                bench.proxy.freezeAll();
              }
            });
    try (PartitionFetcher fetcher =
        PartitionFetcher.builder(tap)
            .policy(SharePolicy.HALVING)
            .extraTime(Duration.ofSeconds(3))
            .build()) {
      PartitionData data =
          got(fetcher.fetch(
                  FetchRequest.builder().maxWait(MAX_WAIT).partition(partition, 0).build()))
              .partition(partition);
      assertThat(data.error()).isEqualTo(ErrorCode.NONE);
      assertThat(data.batches()).hasSizeBetween(6, 8 * Pages.ROWS - 1);
      assertThat(data.highWatermark()).isEqualTo(8 * Pages.ROWS);
      bench.proxy.heal();
      eventually(() -> assertThat(bench.running()).isEmpty());
      eventually(() -> assertThat(bench.acquired()).isZero());
    }
  }
}
