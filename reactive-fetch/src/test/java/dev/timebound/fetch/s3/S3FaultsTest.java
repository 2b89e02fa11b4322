package dev.timebound.fetch.s3;

import static dev.timebound.fetch.Eventually.eventually;
import static dev.timebound.fetch.s3.S3Bench.BOUND;
import static dev.timebound.fetch.s3.S3Bench.bases;
import static dev.timebound.fetch.s3.S3Bench.bytes;
import static dev.timebound.fetch.s3.S3Bench.from;
import static dev.timebound.fetch.s3.S3Bench.got;
import static dev.timebound.fetch.s3.S3Bench.reading;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.ErrorCode;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.PartitionData;
import dev.timebound.fetch.PartitionFetcher;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.SharePolicy;
import dev.timebound.fetch.TopicPartition;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.test.StepVerifier;
import software.amazon.awssdk.services.s3.S3AsyncClient;

@DisplayName("S3 on a bad day")
class S3FaultsTest {
  /** Of the objects below: a body that takes a while on a slow road. */
  private static final int BATCHES = 20;

  private static final int SIZE = 100_000;

  private final S3Bench bench = new S3Bench();

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  /** One object of many batches of one record each. */
  private TopicPartition large() {
    TopicPartition partition = bench.newPartition();
    List<S3Store.NewBatch> batches = new ArrayList<>();
    for (int i = 0; i < BATCHES; i++) {
      int value = i;
      batches.add(new S3Store.NewBatch(base -> bytes(value, SIZE), 1, i));
    }
    got(bench.store.appendAll(partition, batches));
    return partition;
  }

  private void slowly(TopicPartition partition, int bytesPerSecond) {
    bench.requests.detour(bench.keys.log(partition));
    bench.detour.trickle(bytesPerSecond);
  }

  private static void whole(List<RecordBatch> batches, int first) {
    assertThat(bases(batches))
        .containsExactlyElementsOf(
            LongStream.range(first, first + batches.size()).boxed().toList());
    for (RecordBatch batch : batches) {
      assertThat(batch.bytes()).isEqualTo(bytes((int) batch.baseOffset(), SIZE));
    }
  }

  /** One after the other: what a read brings is answered once it is done. */
  private PartitionFetcher halving(Duration extraTime) {
    return PartitionFetcher.builder(bench.store)
        .policy(SharePolicy.HALVING)
        .extraTime(extraTime)
        .build();
  }

  private static PartitionData fetched(
      PartitionFetcher fetcher, TopicPartition partition, long offset) {
    FetchRequest request =
        FetchRequest.builder()
            .maxWait(Duration.ofMillis(500))
            .partition(partition, offset, 10_000_000)
            .build();
    return got(fetcher.fetch(request)).partition(partition);
  }

  @Nested
  @DisplayName("503 SlowDown")
  class Refused {
    @ParameterizedTest
    @ValueSource(strings = {"LIST", "GET"})
    @DisplayName(
        "FE-25 after the SDK's retries it is its partition's error, and retriable; nothing is left")
    void afterTheRetries(String request) {
      TopicPartition refused = bench.filled(1, 20);
      TopicPartition fine = bench.filled(1, 20);
      try (PartitionFetcher fetcher = halving(Duration.ofSeconds(5))) {
        bench.requests.refuse(request, S3Bench.ATTEMPTS);
        bench.requests.sent().clear();
        FetchResponse response =
            got(
                fetcher.fetch(
                    FetchRequest.builder()
                        .maxWait(Duration.ofSeconds(5))
                        .partition(refused, 0)
                        .partition(fine, 0)
                        .build()));
        assertThat(response.partition(refused).error()).isEqualTo(ErrorCode.STORAGE_ERROR);
        assertThat(response.partition(refused).batches()).isEmpty();
        assertThat(response.partition(fine).batches()).hasSize(1);
        assertThat(bench.requests.sent(request))
            .as("what the SDK tries, and no more")
            .filteredOn(each -> !each.contains(bench.keys.partition(fine)))
            .hasSize(S3Bench.ATTEMPTS);
        bench.nothingOpen();
        assertThat(fetched(fetcher, refused, 0).batches()).as("as soon as it answers").hasSize(1);
      }
    }

    @Test
    @DisplayName("a read that is answered at the last try is none the wiser")
    void lastTry() {
      TopicPartition partition = bench.filled(1, 20);
      bench.requests.refuse("GET", S3Bench.ATTEMPTS - 1);
      assertThat(bench.read(bench.store, partition, from(0, 1000))).hasSize(1);
    }

    @Test
    @DisplayName("an append fails with what S3 said, takes no offset, and the next one is written")
    void append() {
      TopicPartition partition = bench.filled(1, 20);
      bench.requests.refuse("PUT", S3Bench.ATTEMPTS);
      assertThatThrownBy(() -> bench.append(partition, 1, 20))
          .isInstanceOf(S3StoreException.class)
          .hasMessageContaining(bench.keys.object(partition, 1))
          .hasMessageContaining("503 SlowDown");
      bench.nothingOpen();
      assertThat(bench.append(partition, 2, 20)).isOne();
      assertThat(bench.read(bench.store, partition, from(0, 1000))).hasSize(2);
    }
  }

  @Nested
  @DisplayName("a PUT that was done, and whose answer is lost")
  class Lost {
    @Test
    @DisplayName("the SDK asks again: the append is told its offset, and is there once")
    void askedAgain() {
      TopicPartition partition = bench.filled(1, 20);
      bench.requests.sent().clear();
      bench.requests.loseAnswers("PUT", 1);
      assertThat(bench.append(partition, 1, 20)).isOne();
      assertThat(bench.requests.sent("PUT")).hasSize(2);
      assertThat(bench.append(partition, 2, 20)).isEqualTo(2);
      assertThat(bases(bench.read(bench.store, partition, from(0, 1000))))
          .containsExactly(0L, 1L, 2L);
    }

    @Test
    @DisplayName("the other writer's object is not taken for one's own")
    void anothersObject() {
      TopicPartition partition = bench.filled(1, 20);
      S3Store other = bench.store(bench.client, all -> all);
      got(other.append(partition, bytes(9, 20), 1, 1));
      bench.requests.loseAnswers("PUT", 1); // 412, for it is taken
      assertThat(bench.append(partition, 1, 20)).isEqualTo(2);
      assertThat(bases(bench.read(other, partition, from(0, 1000)))).containsExactly(0L, 1L, 2L);
    }

    @Test
    @DisplayName("nobody asks again: it fails in doubt, is there once, and hides no other append")
    void inDoubt() {
      TopicPartition partition = bench.filled(1, 20);
      try (S3AsyncClient once = S3Bench.client(bench.proxy.port(), bench.requests, 1)) {
        S3Store store = bench.store(once, all -> all);
        bench.requests.loseAnswers("PUT", 1);
        assertThatThrownBy(() -> got(store.append(partition, bytes(1, 20), 1, 1)))
            .isInstanceOf(S3StoreException.class)
            .hasMessageContaining(bench.keys.object(partition, 1))
            .hasMessageContaining("connection reset");
        assertThat(got(store.append(partition, bytes(2, 20), 1, 2))).isEqualTo(2);
        List<RecordBatch> all = bench.read(store, partition, from(0, 1000));
        assertThat(bases(all)).containsExactly(0L, 1L, 2L);
        assertThat(all.get(1).bytes()).isEqualTo(bytes(1, 20));
        assertThat(all.get(2).bytes()).isEqualTo(bytes(2, 20));
      }
    }
  }

  @Nested
  @DisplayName("a body")
  class Bodies {
    @Test
    @DisplayName("FE-10 that breaks off: what came whole is handed on, and the read is an error")
    void reset() {
      TopicPartition partition = large();
      slowly(partition, 1_000_000);
      List<RecordBatch> came = new ArrayList<>();
      StepVerifier.create(
              reading(bench.store, partition, from(0, 10_000_000), Deadline.none())
                  .doOnNext(came::add)
                  .doOnNext(
                      batch -> {
                        if (came.size() == 2) {
                          bench.detour.cut();
                        }
                      }))
          .thenConsumeWhile(any -> true)
          .expectErrorSatisfies(
              error ->
                  assertThat(error)
                      .isInstanceOf(S3StoreException.class)
                      .hasMessageContaining(bench.keys.object(partition, 0)))
          .verify(BOUND);
      assertThat(came).hasSizeBetween(2, BATCHES - 1);
      whole(came, 0);
      bench.nothingOpen();
      bench.detour.heal();
      whole(bench.read(bench.store, partition, from(came.size(), 10_000_000)), came.size());
    }

    @Test
    @DisplayName("FE-10 FE-25 that breaks off in a request: it is answered, and the next goes on")
    void resetInARequest() throws InterruptedException {
      TopicPartition partition = large();
      slowly(partition, 1_000_000);
      List<RecordBatch> came = new ArrayList<>();
      try (PartitionFetcher fetcher = halving(Duration.ofSeconds(5))) {
        while (came.size() < BATCHES) {
          long passed = bench.detour.bytesToClient();
          Thread cutter = new Thread(() -> cutAfter(passed + 3 * SIZE));
          cutter.start();
          PartitionData data = fetched(fetcher, partition, came.size());
          cutter.interrupt();
          cutter.join(); // else it would cut the next one's, before a batch of it came
          assertThat(data.error()).isEqualTo(ErrorCode.NONE);
          assertThat(data.batches()).isNotEmpty();
          whole(data.batches(), came.size());
          came.addAll(data.batches());
        }
      }
      whole(came, 0);
    }

    private void cutAfter(long bytes) {
      while (!Thread.currentThread().isInterrupted()) {
        if (bench.detour.bytesToClient() >= bytes) {
          bench.detour.cut();
          return;
        }
        LockSupport.parkNanos(1_000_000);
      }
    }

    @Test
    @DisplayName("FE-3 FE-24 that is slower than the budget is read to its end, within the cap")
    void slowerThanTheBudget() {
      TopicPartition partition = large();
      slowly(partition, 1_500_000);
      try (PartitionFetcher fetcher = halving(Duration.ofSeconds(20))) {
        PartitionData data = fetched(fetcher, partition, 0);
        assertThat(data.error()).isEqualTo(ErrorCode.NONE);
        assertThat(data.batches()).hasSize(BATCHES);
        whole(data.batches(), 0);
      }
    }

    @Test
    @DisplayName("FE-10 FE-22 that is slower than the cap: what came is answered, and it is ended")
    void slowerThanTheCap() {
      TopicPartition partition = large();
      slowly(partition, 500_000);
      List<RecordBatch> came = new ArrayList<>();
      try (PartitionFetcher fetcher = halving(Duration.ofSeconds(1))) {
        PartitionData data = fetched(fetcher, partition, 0);
        assertThat(data.error()).isEqualTo(ErrorCode.NONE);
        assertThat(data.batches()).hasSizeBetween(1, BATCHES - 1);
        assertThat(data.highWatermark()).isEqualTo(BATCHES);
        came.addAll(data.batches());
        bench.nothingOpen();
        bench.detour.fullSpeed();
        eventually(
            () -> {
              came.addAll(fetched(fetcher, partition, came.size()).batches());
              assertThat(came).as("no more than the rest").hasSize(BATCHES);
            });
      }
      whole(came, 0);
    }
  }
}
