package dev.timebound.fetch.issues;

import static dev.timebound.fetch.Bench.request;
import static dev.timebound.fetch.ScriptedStore.batch;
import static dev.timebound.fetch.ScriptedStore.duration;
import static dev.timebound.fetch.ScriptedStore.partition;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.fetch.Bench;
import dev.timebound.fetch.BoundedStore;
import dev.timebound.fetch.ErrorCode;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.publisher.Flux;

@DisplayName("Reported of fetches elsewhere")
class ReportedSymptomsTest {
  private static int[] upTo(int count) {
    int[] all = new int[count];
    for (int i = 0; i < count; i++) {
      all[i] = i;
    }
    return all;
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-1 hundreds of unanswered fetches pile up: each is answered in its time")
  void unansweredFetchesPileUp(SharePolicy policy) {
    try (Bench bench = new Bench(policy)) {
      bench.store.on(0).stalls();
      bench.store.on(1).stalls();
      List<Bench.Answer<FetchResponse>> answers = new ArrayList<>();
      for (int i = 0; i < 400; i++) {
        answers.add(bench.begin(request(500, 0, 1)));
        bench.advance(10);
      }
      assertThat(bench.store.active()).as("reads of fetches of the last 5.5 s").isLessThan(1200);
      bench.advance(5500);
      assertThat(answers).allMatch(Bench.Answer::isOver);
      assertThat(bench.store.active()).isZero();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"HALVING", "EQUAL"})
  @DisplayName(
      "FE-4 one record for each storage call once max_wait is over: half of it is there still")
  void oneRecordPerCallAfterMaxWait(SharePolicy policy) {
    try (Bench bench = new Bench(policy)) {
      bench.store.on(0).usesItsBudget().end(1);
      // a record each 20 ms, for as long as the budget lasts
      bench
          .store
          .on(1)
          .read(
              (spec, budget) ->
                  Flux.interval(duration(20), bench.time)
                      .takeWhile(i -> !budget.isExpired())
                      .map(i -> batch(spec.offset() + i, 10)))
          .end(1000);
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1).minBytes(1_000_000));
      assertThat(bench.data(answer, 1).batches()).hasSize(12);
    }
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-24 a 2 s read under a limit of 500 ms is retried for ever: it comes to its end")
  void slowReadRetriedForEver(SharePolicy policy) {
    try (Bench bench = new Bench(policy)) {
      bench.store.on(0).takes(2000);
      bench.store.on(1).end(0).tells();
      for (int i = 0; i < 3; i++) {
        Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1));
        assertThat(bench.data(answer, 0).batches()).hasSize(10);
      }
      assertThat(bench.store.on(0).reads).as("no read was in vain").hasSize(3);
    }
  }

  @Test
  @DisplayName("FE-9 a response five times max_bytes from parallel reads: it is kept")
  void fiveTimesMaxBytes() {
    try (Bench bench = new Bench(SharePolicy.PARALLEL)) {
      FetchRequest.Builder request = FetchRequest.builder().maxBytes(10_000);
      for (int i = 0; i < 5; i++) {
        bench.store.on(i).size(1000).end(100).takes(5);
        request.partition(partition(i), 0, 10_000);
      }
      assertThat(bench.fetch(request).item().sizeInBytes()).isEqualTo(10_000);
    }
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName(
      "FE-13 min_bytes above the partition's limit waits for ever: the limit ends the wait")
  void minBytesAboveThePartitionLimit(SharePolicy policy) {
    try (Bench bench = new Bench(policy)) {
      bench.store.on(0).end(100);
      FetchRequest.Builder request =
          FetchRequest.builder()
              .maxWait(duration(20_000))
              .minBytes(100_000)
              .partition(partition(0), 0, 1000);
      assertThat(bench.fetch(request).at).isZero();
    }
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-25 one partition's exception fails the whole fetch: it is its own")
  void onePartitionsExceptionFailsAll(SharePolicy policy) {
    try (Bench bench = new Bench(policy)) {
      bench.store.on(0).fails(new IllegalStateException("torn"));
      bench.store.on(1).healthy();
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1));
      assertThat(bench.data(answer, 0).error()).isEqualTo(ErrorCode.STORAGE_ERROR);
      assertThat(bench.data(answer, 1).batches()).hasSize(10);
    }
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName(
      "FE-12 an offset above the high watermark is answered empty, for ever: it is an error")
  void offsetAboveTheHighWatermark(SharePolicy policy) {
    try (Bench bench = new Bench(policy)) {
      bench.store.on(0).end(10);
      Bench.Answer<FetchResponse> answer =
          bench.fetch(FetchRequest.builder().partition(partition(0), 11));
      assertThat(bench.data(answer, 0).error()).isEqualTo(ErrorCode.OFFSET_OUT_OF_RANGE);
      assertThat(answer.at).isZero();
    }
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-25 an idle topic is polled in a tight loop: by wake-ups, or by the pauses")
  void idleTopicInATightLoop(SharePolicy policy) {
    try (Bench bench = new Bench(policy)) {
      bench.store.on(0).end(0).tells();
      bench.store.on(1).end(0);
      bench.fetch(request(5000, 0, 1));
      assertThat(bench.store.on(0).offsetCalls).hasSize(1);
      assertThat(bench.store.on(0).reads).isEmpty();
      assertThat(bench.store.on(1).offsetCalls).as("10, 20, 40 … 1250 ms").hasSizeLessThan(13);
    }
  }

  @Test
  @DisplayName(
      "FE-7 slow reads fill the pool and block fast ones: one partition has its part of it")
  void slowReadsFillThePool() {
    try (Bench bench =
        new Bench(s -> s, store -> BoundedStore.builder(store, 4).name("disk").build())) {
      bench.store.on(0).stalls();
      bench.store.on(1).takes(5);
      List<Bench.Answer<FetchResponse>> slow = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        slow.add(bench.begin(request(500, 0)));
      }
      bench.advance(10);
      for (int i = 0; i < 10; i++) {
        double before = bench.store.now();
        Bench.Answer<FetchResponse> fast = bench.fetch(request(500, 1));
        assertThat(bench.data(fast, 1).batches()).hasSize(10);
        assertThat(fast.at - before).isEqualTo(5);
      }
      bench.advance(6000);
      assertThat(slow).allMatch(Bench.Answer::isOver);
    }
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-25 permits are not given back when a client goes away: they are")
  void permitsNotGivenBack(SharePolicy policy) {
    try (Bench bench =
        new Bench(s -> s.policy(policy), store -> BoundedStore.builder(store, 2).build())) {
      BoundedStore bounded = (BoundedStore) bench.served;
      bench.store.on(0).stalls();
      bench.store.on(1).stalls();
      for (int i = 0; i < 50; i++) {
        Bench.Answer<FetchResponse> answer = bench.begin(request(500, 0, 1));
        bench.advance(i);
        assertThat(bounded.held()).isPositive();
        answer.subscription.dispose();
        assertThat(bounded.held()).isZero();
        assertThat(bounded.waiting()).isZero();
      }
    }
  }

  @Test
  @DisplayName("FE-9 200 partitions of which 2 are slow: the 198 are not held up")
  void twoHundredPartitions() {
    int[] all = upTo(200);
    try (Bench bench = new Bench(SharePolicy.PARALLEL)) {
      for (int i : all) {
        bench.store.on(i).takes(2);
      }
      bench.store.on(17).stalls();
      bench.store.on(90).offsetsStall();
      for (int i = 0; i < 3; i++) {
        double before = bench.store.now();
        Bench.Answer<FetchResponse> answer = bench.fetch(request(500, all));
        long served =
            answer.item().partitions().stream().filter(p -> !p.batches().isEmpty()).count();
        assertThat(served).isEqualTo(198);
        assertThat(answer.at - before).isLessThan(100);
      }
    }
  }

  @Test
  @DisplayName("FE-2 200 partitions of which 2 are slow, one after the other: the 198 move on")
  void twoHundredPartitionsOneByOne() {
    int[] all = upTo(200);
    try (Bench bench = new Bench(SharePolicy.HALVING)) {
      for (int i : all) {
        bench.store.on(i).healthy();
      }
      bench.store.on(17).stalls();
      bench.store.on(90).stalls();
      for (int i = 0; i < 3; i++) {
        Bench.Answer<FetchResponse> answer = bench.fetch(request(500, all));
        List<RecordBatch> batches =
            answer.item().partitions().stream().flatMap(p -> p.batches().stream()).toList();
        assertThat(batches).hasSize(1980);
      }
    }
  }
}
