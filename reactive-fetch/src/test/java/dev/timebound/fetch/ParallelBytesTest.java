package dev.timebound.fetch;

import static dev.timebound.fetch.Bench.request;
import static dev.timebound.fetch.ScriptedStore.partition;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;

@DisplayName("FE-9 parallel, what it reserves and tells")
class ParallelBytesTest {
  private final Bench bench = new Bench(settings -> settings);

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  @Nested
  @DisplayName("bytes")
  class Bytes {
    private FetchRequest.Builder limited(int maxBytes, int count) {
      FetchRequest.Builder request =
          FetchRequest.builder().maxWait(ScriptedStore.duration(500)).maxBytes(maxBytes);
      for (int i = 0; i < count; i++) {
        request.partition(partition(i), 0, 1000);
      }
      return request;
    }

    @Test
    @DisplayName("FE-9 they are reserved before a read starts: max_bytes is kept")
    void reserved() {
      for (int i = 0; i < 5; i++) {
        bench.store.on(i).takes(5);
      }
      FetchResponse response = bench.fetch(limited(1000, 5)).item();
      assertThat(response.sizeInBytes()).isEqualTo(1000);
      int asked = 0;
      for (int i = 0; i < 5; i++) {
        for (ScriptedStore.Call read : bench.store.on(i).reads) {
          asked += read.spec() == null ? 0 : read.spec().maxBytes();
        }
      }
      assertThat(asked).as("what stores were asked for in all").isLessThanOrEqualTo(1000);
    }

    @Test
    @DisplayName("FE-9 FE-13 exceeded by the one first batch at most")
    void oneFirstBatch() {
      for (int i = 0; i < 5; i++) {
        bench.store.on(i).size(700).takes(5);
      }
      FetchResponse response = bench.fetch(limited(500, 5)).item();
      assertThat(response.sizeInBytes()).isEqualTo(700);
    }

    @Test
    @DisplayName("FE-9 what a stalled read reserved is free for others after the grace")
    void lapses() {
      bench.store.on(0).stalls();
      bench.store.on(1).takes(5);
      Bench.Answer<FetchResponse> answer = bench.fetch(limited(1000, 2));
      assertThat(bench.data(answer, 1).batches()).hasSize(10);
      assertThat(answer.at).isEqualTo(25);
    }

    @Test
    @DisplayName("FE-13 a stalled one does not keep the first-batch exception to itself")
    void firstBatchPassesOn() {
      bench.store.on(0).stalls();
      bench.store.on(1).size(5000);
      Bench.Answer<FetchResponse> answer = bench.fetch(limited(3000, 2));
      assertThat(bench.data(answer, 1).batches()).hasSize(1);
      assertThat(answer.at).isEqualTo(20);
    }

    @Test
    @DisplayName("FE-13 FE-24 nor where it would have its turn only after the end of max_wait")
    void firstBatchAfterTheWait() {
      bench.store.on(0).stalls();
      bench.store.on(1).size(5000).takes(15);
      Bench.Answer<FetchResponse> answer =
          bench.fetch(limited(3000, 2).maxWait(ScriptedStore.duration(10)));
      assertThat(bench.data(answer, 1).batches()).hasSize(1);
      assertThat(answer.at).isEqualTo(35);
    }

    @Test
    @DisplayName("FE-25 an empty partition does not take the first-batch exception away")
    void emptyPassesOn() {
      bench.store.on(0).end(0).tells();
      bench.store.on(1).size(5000).takes(3);
      Bench.Answer<FetchResponse> answer = bench.fetch(limited(3000, 2));
      assertThat(bench.data(answer, 1).batches()).hasSize(1);
      bench.store.on(2).takes(10).end(0);
      FetchRequest.Builder request = request(500, 2).partition(partition(1), 0, 100);
      assertThat(bench.data(bench.fetch(request), 1).batches()).hasSize(1);
    }

    @Test
    @DisplayName("FE-9 a late batch of a lapsed read is taken only where there is room")
    void lateBatch() {
      bench.store.on(0).takes(30);
      bench.store.on(1).takes(5);
      FetchRequest.Builder request = limited(1000, 2).minBytes(10_000);
      FetchResponse response = bench.fetch(request).item();
      assertThat(response.sizeInBytes()).isLessThanOrEqualTo(1000);
      assertThat(response.partition(partition(1)).batches()).hasSize(10);
    }
  }

  @Nested
  @DisplayName("fetchEach")
  class Each {
    @Test
    @DisplayName("FE-9 each partition when it is done, the others at the end")
    void each() {
      bench.store.on(0).takes(15);
      bench.store.on(1).takes(5);
      bench.store.on(2).end(0).tells();
      FetchRequest request = request(100, 0, 1, 2, 3).minBytes(100_000).build();
      Bench.Answer<PartitionData> answer = bench.subscribe(bench.fetcher.fetchEach(request));
      bench.advance(100);
      assertThat(answer.items)
          .extracting(PartitionData::partition)
          .containsExactly(partition(3), partition(1), partition(0), partition(2));
      assertThat(answer.items.get(0).error()).isEqualTo(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
      assertThat(answer.times.subList(0, 3)).containsExactly(0.0, 5.0, 15.0);
      assertThat(bench.store.on(0).reads).as("once it has brought something").hasSize(1);
    }

    @Test
    @DisplayName("FE-25 a subscriber that leaves cancels the reads")
    void cancel() {
      bench.store.on(0).stalls();
      bench.store.on(1).healthy();
      List<PartitionData> taken = new ArrayList<>();
      Flux<PartitionData> first = bench.fetcher.fetchEach(request(500, 0, 1).build()).take(1);
      first.subscribe(taken::add);
      assertThat(taken).hasSize(1);
      assertThat(bench.store.active()).isZero();
    }
  }
}
