package dev.timebound.fetch;

import static dev.timebound.fetch.Bench.request;
import static dev.timebound.fetch.ScriptedStore.partition;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.publisher.Flux;

@DisplayName("Rounds of a request that waits for min_bytes")
class RoundsTest {
  private final Bench bench = new Bench(SharePolicy.HALVING);

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  private static List<Double> times(List<ScriptedStore.Call> calls) {
    return calls.stream().map(ScriptedStore.Call::at).toList();
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-8 without wake-ups it is asked again after pauses that double, to max_wait/4")
  void pauses(SharePolicy policy) {
    try (Bench of = new Bench(policy)) {
      of.store.on(0).end(0);
      of.store.on(1).end(0);
      Bench.Answer<FetchResponse> answer = of.fetch(request(500, 0, 1));
      assertThat(times(of.store.on(0).offsetCalls))
          .containsExactly(0.0, 10.0, 30.0, 70.0, 150.0, 275.0, 400.0);
      assertThat(times(of.store.on(1).offsetCalls)).isEqualTo(times(of.store.on(0).offsetCalls));
      assertThat(answer.at).isEqualTo(500);
    }
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-8 FE-25 an append wakes it, at one read for each wake-up and partition")
  void wakes(SharePolicy policy) {
    try (Bench of = new Bench(policy)) {
      of.store.on(0).end(0).tells();
      of.store.on(1).end(0).tells();
      Bench.Answer<FetchResponse> answer = of.begin(request(500, 0, 1).minBytes(200));
      of.advance(100);
      assertThat(of.store.on(0).offsetCalls).hasSize(1);
      of.store.on(0).append(1);
      of.store.on(0).append(0);
      of.advance(1);
      assertThat(of.store.on(0).reads).hasSize(1);
      assertThat(of.store.on(1).offsetCalls).as("the other is left alone").hasSize(1);
      assertThat(answer.isOver()).isFalse();
      of.store.on(1).append(1);
      of.advance(policy == SharePolicy.PARALLEL ? 20 : 1);
      assertThat(answer.isOver()).isTrue();
      assertThat(of.data(answer, 0).batches()).as("what an earlier round read").hasSize(1);
      assertThat(of.data(answer, 1).batches()).hasSize(1);
    }
  }

  @Test
  @DisplayName("FE-8 the partitions left are counted anew on each round")
  void countedAnew() {
    bench.store.on(0).end(0);
    bench.store.on(1).end(0);
    bench.fetch(request(500, 0, 1));
    List<ScriptedStore.Call> first = bench.store.on(0).offsetCalls;
    List<ScriptedStore.Call> last = bench.store.on(1).offsetCalls;
    for (int round = 0; round < first.size(); round++) {
      double at = first.get(round).at();
      assertThat(first.get(round).cap()).isEqualTo(at + (5500 - at) / 2);
      assertThat(last.get(round).cap()).isEqualTo(5500);
    }
  }

  @Test
  @DisplayName("FE-8 no round after the end of max_wait, nor after the deadline")
  void noRoundAfter() {
    bench.store.on(0).end(0);
    Bench.Answer<FetchResponse> answer = bench.fetch(request(60_000, 0));
    assertThat(answer.at).isEqualTo(25_000);
    int calls = bench.store.on(0).offsetCalls.size();
    bench.advance(60_000);
    assertThat(bench.store.on(0).offsetCalls).hasSize(calls);
    bench.store.on(1).end(0).tells();
    answer = bench.fetch(request(500, 1));
    bench.store.on(1).append(1);
    bench.advance(1000);
    assertThat(bench.store.on(1).offsetCalls).hasSize(1);
  }

  @Test
  @DisplayName("FE-25 min_bytes counts over all partitions, and exactly min_bytes is enough")
  void exactlyEnough() {
    bench.store.on(0).end(2);
    bench.store.on(1).end(3);
    assertThat(bench.fetch(request(500, 0, 1).minBytes(500)).at).isZero();
    double before = bench.store.now();
    assertThat(bench.fetch(request(500, 0, 1).minBytes(501)).at).isEqualTo(before + 500);
  }

  @Test
  @DisplayName("FE-25 a later round that fails or stalls throws nothing away")
  void nothingThrownAway() {
    bench.store.on(0).end(2).tells();
    Bench.Answer<FetchResponse> answer = bench.begin(request(500, 0).minBytes(1000));
    bench.store.on(0).fails(new IllegalStateException("torn"));
    bench.store.on(0).append(1);
    bench.advance(500);
    PartitionData data = bench.data(answer, 0);
    assertThat(data.error()).isEqualTo(ErrorCode.NONE);
    assertThat(data.batches()).hasSize(2);
  }

  @Test
  @DisplayName("FE-8 rounds go on from where the last one ended, within one limit")
  void goesOn() {
    bench.store.on(0).end(2).tells();
    FetchRequest.Builder request =
        FetchRequest.builder()
            .maxWait(ScriptedStore.duration(500))
            .minBytes(1000)
            .partition(partition(0), 0, 350);
    Bench.Answer<FetchResponse> answer = bench.begin(request);
    bench.store.on(0).append(5);
    bench.advance(1);
    assertThat(bench.data(answer, 0).batches())
        .extracting(RecordBatch::baseOffset)
        .containsExactly(0L, 1L, 2L);
    assertThat(bench.store.on(0).reads.get(1).spec())
        .isEqualTo(new ReadSpec(2, 150, false, Isolation.READ_UNCOMMITTED));
  }

  @Test
  @DisplayName("FE-8 a store whose wake-ups cannot be had is asked again after pauses")
  void cannotTell() {
    PartitionStore deaf =
        new ForwardingStore(bench.store) {
          @Override
          public java.util.Optional<reactor.core.Disposable> onAppend(
              TopicPartition partition, Runnable wake) {
            throw new IllegalStateException("no listener");
          }
        };
    bench.store.on(0).end(0);
    try (PartitionFetcher fetcher =
        PartitionFetcher.builder(deaf).scheduler(bench.time).name("deaf").build()) {
      bench.run(fetcher.fetch(request(500, 0).build()));
    }
    assertThat(bench.store.on(0).offsetCalls).hasSize(7);
  }

  @Test
  @DisplayName("FE-25 min_bytes 0: each partition is asked once, and the answer goes")
  void minBytesZero() {
    bench.store.on(0).end(0);
    bench.store.on(1).takes(30);
    Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1).minBytes(0));
    assertThat(answer.at).isEqualTo(30);
    assertThat(bench.data(answer, 1).batches()).hasSize(10);
    try (Bench parallel = new Bench(SharePolicy.PARALLEL)) {
      parallel.store.on(0).end(0);
      parallel.store.on(1).takes(30);
      answer = parallel.fetch(request(500, 0, 1).minBytes(0));
      assertThat(answer.at).isEqualTo(30);
      assertThat(parallel.data(answer, 1).batches()).hasSize(10);
    }
  }

  @Test
  @DisplayName("FE-12 an error that the client must act on ends the wait")
  void errorEndsTheWait() {
    bench.store.on(1).end(0);
    assertThat(bench.fetch(request(500, 0, 1)).at).isZero();
  }

  @Test
  @DisplayName(
      "FE-25 a store's failure is asked again within the wait, and its success is answered")
  void failureAgain() {
    int[] calls = new int[1];
    bench
        .store
        .on(0)
        .read(
            (spec, budget) ->
                calls[0]++ == 0
                    ? Flux.error(new IllegalStateException("once"))
                    : bench.store.on(0).data(spec));
    Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0));
    assertThat(answer.at).isEqualTo(10);
    assertThat(bench.data(answer, 0).error()).isEqualTo(ErrorCode.NONE);
    assertThat(bench.data(answer, 0).batches()).hasSize(10);
  }
}
