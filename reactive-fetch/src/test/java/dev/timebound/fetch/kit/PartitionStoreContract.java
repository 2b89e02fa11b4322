package dev.timebound.fetch.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.fetch.AbortedTransaction;
import dev.timebound.fetch.ErrorCode;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.PartitionData;
import dev.timebound.fetch.PartitionFetcher;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.test.StepVerifier;

/**
 * What every {@link dev.timebound.fetch.PartitionStore} keeps. A store's test extends it:
 *
 * <pre>{@code
 * class MyStoreContractTest extends PartitionStoreContract {
 *   protected StoreUnderTest open() { return new MyStoreUnderTest(); }
 * }
 * }</pre>
 */
public abstract class PartitionStoreContract extends StoreConduct {
  @Nested
  @DisplayName("partitions")
  class Partitions {
    @Test
    @DisplayName("FE-12 those that exist, of those that are asked for")
    void existing() {
      TopicPartition there = tested.newPartition();
      tested.newPartition();
      TopicPartition not = new TopicPartition("no-such-topic", 0);
      TopicPartition neither = new TopicPartition(there.topic(), 4711);
      assertThat(tested.store().existing(Set.of(there, not, neither)).block(tested.longest()))
          .containsExactly(there);
    }

    @Test
    @DisplayName("offsets of an empty one, and of one with records")
    void offsetsOf() {
      Offsets empty = offsets(tested.newPartition());
      assertThat(empty.logStart()).isZero();
      assertThat(empty.highWatermark()).isZero();
      assertThat(empty.lastStable()).isZero();
      Offsets four = offsets(four());
      assertThat(four.logStart()).isZero();
      assertThat(four.highWatermark()).isEqualTo(12);
      assertThat(four.lastStable()).isEqualTo(12);
    }

    @Test
    @DisplayName("what is deleted is gone, and the start tells")
    void retention() {
      assumeTrue(tested.hasRetention());
      TopicPartition partition = four();
      tested.deleteBefore(partition, 6);
      assertThat(offsets(partition).logStart()).isEqualTo(6);
      assertThat(offsets(partition).highWatermark()).isEqualTo(12);
      assertThat(bases(read(partition, from(6, 1000, false)))).containsExactly(6L, 9L);
    }
  }

  @Nested
  @DisplayName("reads")
  class Reads {
    @Test
    @DisplayName("from an offset on, in order, the bytes as they were appended")
    void inOrder() {
      TopicPartition partition = four();
      List<RecordBatch> batches = read(partition, from(3, 1000, false));
      assertThat(bases(batches)).containsExactly(3L, 6L, 9L);
      RecordBatch first = batches.get(0);
      assertThat(first.bytes()).isEqualTo(bytes(1, 100));
      assertThat(first.lastOffset()).isEqualTo(5);
      assertThat(first.recordCount()).isEqualTo(3);
      assertThat(first.maxTimestamp()).isEqualTo(1001);
    }

    @Test
    @DisplayName("an offset in the middle of a batch: the batch that holds it")
    void midBatch() {
      TopicPartition partition = four();
      for (long offset : new long[] {3, 4, 5}) {
        assertThat(bases(read(partition, from(offset, 100, false)))).containsExactly(3L);
      }
    }

    @Test
    @DisplayName("nothing at the end, and nothing of an empty partition")
    void empty() {
      assertThat(read(four(), from(12, 1000, true))).isEmpty();
      assertThat(read(tested.newPartition(), from(0, 1000, true))).isEmpty();
    }

    @Test
    @DisplayName("FE-13 whole batches, as many as fit")
    void fit() {
      TopicPartition partition = four();
      assertThat(bases(read(partition, from(0, 200, false)))).containsExactly(0L, 3L);
      assertThat(bases(read(partition, from(0, 299, false)))).containsExactly(0L, 3L);
      assertThat(bases(read(partition, from(0, 300, true)))).containsExactly(0L, 3L, 6L);
    }

    @Test
    @DisplayName("FE-13 the first one over the limit only where it may be")
    void firstOverLimit() {
      TopicPartition partition = four();
      assertThat(read(partition, from(4, 99, false))).isEmpty();
      assertThat(read(partition, from(4, 0, false))).isEmpty();
      assertThat(bases(read(partition, from(4, 99, true)))).containsExactly(3L);
      assertThat(bases(read(partition, from(4, 0, true)))).containsExactly(3L);
    }

    @Test
    @DisplayName("FE-4 a budget that has passed: no error, and nothing but what is in memory")
    void zeroBudget() {
      TopicPartition partition = four();
      List<RecordBatch> batches =
          read(partition, from(0, 1000, true), Deadline.after(Duration.ZERO));
      assertThat(bases(batches)).isSubsetOf(0L, 3L, 6L, 9L);
    }

    @Test
    @DisplayName("FE-22 a budget that passes between batches: no error, nothing out of order")
    void budgetBetweenBatches() {
      TopicPartition partition = four();
      Deadline budget = Deadline.after(Duration.ofMillis(300));
      List<RecordBatch> batches = new ArrayList<>();
      StepVerifier.create(
              tested
                  .store()
                  .read(partition, from(0, 1000, false), budget)
                  .transform(Deadlines.within(tested.longest()))
                  .doOnNext(batches::add),
              0)
          .thenRequest(1)
          .then(() -> expired(budget))
          .thenRequest(Long.MAX_VALUE)
          .thenConsumeWhile(batch -> true)
          .expectComplete()
          .verify(tested.longest());
      // on a slow machine it may have passed before the first of them
      assertThat(bases(batches)).isEqualTo(List.of(0L, 3L, 6L, 9L).subList(0, batches.size()));
    }

    private static void expired(Deadline deadline) {
      while (!deadline.isExpired()) {
        LockSupport.parkNanos(deadline.remaining().toNanos());
      }
    }

    @Test
    @DisplayName("nothing is done before subscription, and each one reads anew")
    void anew() {
      TopicPartition partition = four();
      Flux<RecordBatch> reading =
          tested.store().read(partition, from(9, 1000, false), Deadline.after(tested.longest()));
      tested.append(partition, bytes(4, 100), 3, 1004);
      assertThat(bases(got(reading.collectList()))).containsExactly(9L, 12L);
      tested.append(partition, bytes(5, 100), 3, 1005);
      assertThat(got(reading.collectList())).hasSize(3);
    }

    @Test
    @DisplayName("FE-22 a cancel after the first batch leaves nothing behind")
    void cancel() {
      TopicPartition partition = four();
      for (int i = 0; i < 20; i++) {
        RecordBatch first =
            got(
                tested
                    .store()
                    .read(partition, from(0, 1000, false), Deadline.after(tested.longest()))
                    .next());
        assertThat(first.baseOffset()).isZero();
      }
    }
  }

  @Nested
  @DisplayName("transactions")
  class Transactions {
    private List<RecordBatch> committed(TopicPartition partition, long offset) {
      return read(partition, new ReadSpec(offset, 1000, true, Isolation.READ_COMMITTED));
    }

    @Test
    @DisplayName("nothing past the first open one is shown to READ_COMMITTED")
    void open() {
      assumeTrue(tested.hasTransactions());
      TopicPartition partition = tested.newPartition();
      tested.append(partition, bytes(0, 10), 1, 1);
      tested.appendTransactional(partition, 7, bytes(1, 10), 2);
      tested.append(partition, bytes(2, 10), 1, 1);
      assertThat(offsets(partition).lastStable()).isEqualTo(1);
      assertThat(offsets(partition).highWatermark()).isEqualTo(4);
      assertThat(bases(committed(partition, 0))).containsExactly(0L);
      assertThat(bases(read(partition, from(0, 1000, true)))).containsExactly(0L, 1L, 3L);
      tested.endTransaction(partition, 7, true);
      assertThat(offsets(partition).lastStable()).isEqualTo(5);
      assertThat(bases(committed(partition, 0))).containsExactly(0L, 1L, 3L, 4L);
    }

    @Test
    @DisplayName("an aborted one is told with the batches that have records of it")
    void aborted() {
      assumeTrue(tested.hasTransactions());
      TopicPartition partition = tested.newPartition();
      tested.appendTransactional(partition, 7, bytes(0, 10), 2);
      tested.appendTransactional(partition, 8, bytes(1, 10), 1);
      tested.appendTransactional(partition, 7, bytes(2, 10), 1);
      tested.endTransaction(partition, 7, false);
      tested.endTransaction(partition, 8, true);
      tested.append(partition, bytes(3, 10), 1, 1);
      List<RecordBatch> batches = committed(partition, 0);
      assertThat(bases(batches)).containsExactly(0L, 2L, 3L, 4L, 5L, 6L);
      AbortedTransaction seven = new AbortedTransaction(7, 0);
      assertThat(batches.get(0).aborted()).containsExactly(seven);
      assertThat(batches.get(2).aborted()).containsExactly(seven);
      assertThat(batches.get(5).aborted()).isEmpty();
      assertThat(committed(partition, 3).get(0).aborted())
          .as("of one that began before what is read")
          .containsExactly(seven);
      assertThat(read(partition, from(0, 1000, true)))
          .as("READ_UNCOMMITTED needs none")
          .allSatisfy(batch -> assertThat(batch.aborted()).isEmpty());
    }
  }

  @Nested
  @DisplayName("offsets by time")
  class ByTime {
    @Test
    @DisplayName("the first batch with a record at or after it; none after the last")
    void byTime() {
      TopicPartition partition = four();
      assertThat(found(partition, 0).offset()).isZero();
      assertThat(found(partition, 1001).offset()).isBetween(3L, 5L);
      assertThat(found(partition, 1003).offset()).isBetween(9L, 11L);
      assertThat(found(partition, 1004)).isEqualTo(TimestampOffset.NONE);
      assertThat(found(tested.newPartition(), 0)).isEqualTo(TimestampOffset.NONE);
    }

    private TimestampOffset found(TopicPartition partition, long timestamp) {
      return got(tested.store().offsetFor(partition, timestamp, Isolation.READ_UNCOMMITTED));
    }
  }

  @Nested
  @DisplayName("through a fetcher")
  class ThroughAFetcher {
    @Test
    @DisplayName("FE-8 an append wakes a long poll")
    void wakes() throws InterruptedException {
      TopicPartition partition = tested.newPartition();
      try (PartitionFetcher fetcher = PartitionFetcher.builder(tested.store()).build()) {
        List<FetchResponse> answers = new ArrayList<>();
        CountDownLatch answered = new CountDownLatch(1);
        fetcher
            .fetch(
                FetchRequest.builder()
                    .maxWait(Duration.ofSeconds(20))
                    .partition(partition, 0)
                    .build())
            .doFinally(end -> answered.countDown())
            .subscribe(answers::add);
        tested.append(partition, bytes(1, 10), 1, 1);
        assertThat(answered.await(tested.longest().toMillis(), TimeUnit.MILLISECONDS)).isTrue();
        assertThat(answers.get(0).partition(partition).batches()).hasSize(1);
      }
    }

    @Test
    @DisplayName("FE-8 whoever listens hears of appends until it stops")
    void listens() throws InterruptedException {
      TopicPartition partition = tested.newPartition();
      CountDownLatch heard = new CountDownLatch(1);
      Optional<Disposable> listening = tested.store().onAppend(partition, heard::countDown);
      assumeTrue(listening.isPresent());
      tested.append(partition, bytes(1, 10), 1, 1);
      assertThat(heard.await(tested.longest().toMillis(), TimeUnit.MILLISECONDS)).isTrue();
      listening.get().dispose();
    }

    @Test
    @DisplayName("FE-12 an offset above the high watermark is out of range")
    void outOfRange() {
      TopicPartition partition = four();
      try (PartitionFetcher fetcher = PartitionFetcher.builder(tested.store()).build()) {
        FetchResponse answer =
            got(fetcher.fetch(FetchRequest.builder().partition(partition, 13).build()));
        assertThat(answer.partition(partition).error()).isEqualTo(ErrorCode.OFFSET_OUT_OF_RANGE);
      }
    }

    @Test
    @DisplayName("FE-10 reads that heed neither deadline nor cancel cost their own partition only")
    void deaf() {
      TopicPartition deaf = four();
      TopicPartition healthy = four();
      DeafStore store = new DeafStore(tested.store(), deaf);
      try (PartitionFetcher fetcher =
          PartitionFetcher.builder(store).extraTime(Duration.ofSeconds(1)).build()) {
        FetchRequest request =
            FetchRequest.builder()
                .partition(deaf, 0)
                .partition(healthy, 0)
                .minBytes(1 << 20)
                .maxWait(tested.maxWait())
                .build();
        for (int i = 0; i < 2; i++) {
          FetchResponse answer = got(fetcher.fetch(request));
          assertThat(answer.partition(deaf).error()).isEqualTo(ErrorCode.NONE);
          assertThat(answer.partition(deaf).batches()).hasSize(4);
          assertThat(answer.partition(healthy).batches()).hasSize(4);
        }
      }
      assertThat(store.deafReads()).as("each was asked for").isGreaterThanOrEqualTo(2);
    }

    @Test
    @DisplayName("FE-10 FE-22 a stalled one is survived, and reads on once it thaws")
    void stall() {
      assumeTrue(tested.canStall());
      TopicPartition stalled = four();
      TopicPartition healthy = four();
      try (PartitionFetcher fetcher = PartitionFetcher.builder(tested.store()).build()) {
        FetchRequest request =
            FetchRequest.builder()
                .minBytes(400)
                .partition(stalled, 0)
                .partition(healthy, 0)
                .maxWait(tested.maxWait())
                .build();
        tested.stall(stalled);
        FetchResponse answer = got(fetcher.fetch(request));
        assertThat(answer.partition(healthy).batches()).hasSize(4);
        assertThat(answer.partition(stalled).error()).isEqualTo(ErrorCode.NONE);
        tested.thaw(stalled);
        PartitionData alone =
            got(fetcher.fetch(
                    FetchRequest.builder()
                        .maxWait(tested.maxWait())
                        .minBytes(400)
                        .partition(stalled, 0)
                        .build()))
                .partition(stalled);
        assertThat(alone.batches()).as("%s, %s", alone.error(), alone.cause()).hasSize(4);
      }
    }
  }
}
