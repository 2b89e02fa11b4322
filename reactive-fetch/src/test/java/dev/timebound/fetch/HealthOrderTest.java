package dev.timebound.fetch;

import static dev.timebound.fetch.Bench.request;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@DisplayName("FE-20 a partition that stalled")
class HealthOrderTest {
  private final Bench bench = new Bench(SharePolicy.HALVING);

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  @Test
  @DisplayName("FE-20 is read last in the next request, until the end of max_wait")
  void last() {
    bench.store.on(0).stalls();
    bench.store.on(1).healthy();
    bench.store.on(2).healthy();
    bench.fetch(request(500, 0, 1, 2));
    double before = bench.store.now();
    assertThat(before).isEqualTo(2750);
    Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1, 2));
    ScriptedStore.Call call = bench.store.on(0).reads.get(1);
    assertThat(call.cap() - before).isEqualTo(500);
    assertThat(answer.at - before).isEqualTo(500);
    assertThat(bench.store.on(1).reads).hasSize(2);
    assertThat(bench.store.on(2).offsetCalls.get(2).cap() - before)
        .as("the stalled one still counts")
        .isEqualTo(2750);
  }

  @Test
  @DisplayName("FE-20 is read last in the next round of its own request, with no more than that")
  void nextRound() {
    bench.store.on(0).stalls();
    bench.store.on(1).end(0);
    Bench.Answer<FetchResponse> answer = bench.fetch(request(10_000, 0, 1));
    ScriptedStore.Script stalled = bench.store.on(0);
    assertThat(stalled.reads.get(0).cap()).isEqualTo(7500);
    double second = stalled.reads.get(1).at();
    assertThat(second).isGreaterThanOrEqualTo(7510);
    assertThat(bench.store.on(1).offsetCalls.get(1).at()).isEqualTo(7510);
    assertThat(stalled.reads.get(1).cap()).isEqualTo(Math.max(10_000, second + 5000));
    assertThat(answer.at).isEqualTo(stalled.reads.get(1).cap());
  }

  @Test
  @DisplayName("FE-20 answers: it is as any other again")
  void answers() {
    bench.store.on(0).stalls();
    bench.store.on(1).healthy();
    bench.fetch(request(500, 0, 1));
    assertThat(bench.isPenalised(0)).isTrue();
    bench.store.on(0).healthy();
    bench.fetch(request(500, 0, 1));
    assertThat(bench.isPenalised(0)).isFalse();
  }

  @Test
  @DisplayName("FE-20 has done so for 30 s since the last time: as any other again")
  void forgotten() {
    bench.store.on(0).stalls();
    bench.store.on(1).healthy();
    bench.fetch(request(500, 0, 1));
    bench.advance(29_000);
    bench.fetch(request(500, 0, 1));
    bench.advance(29_000);
    assertThat(bench.isPenalised(0)).isTrue();
    bench.advance(1_000);
    assertThat(bench.isPenalised(0)).isFalse();
  }

  @Test
  @DisplayName("FE-20 alone in its request it is read as any other")
  void alone() {
    bench.store.on(0).stalls();
    bench.fetch(request(500, 0));
    double before = bench.store.now();
    bench.fetch(request(500, 0));
    assertThat(bench.store.on(0).reads.get(1).cap() - before).isEqualTo(5500);
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-20 under every policy its cap is cut down")
  void everyPolicy(SharePolicy policy) {
    try (Bench of = new Bench(policy)) {
      of.store.on(0).stalls();
      of.store.on(1).end(0).tells();
      of.fetch(request(500, 0, 1));
      double before = of.store.now();
      Bench.Answer<FetchResponse> answer = of.fetch(request(500, 0, 1));
      assertThat(of.store.on(0).reads.get(1).cap() - before).isEqualTo(500);
      assertThat(answer.at - before).isEqualTo(500);
    }
  }

  @Test
  @DisplayName("HE-11 a share too short from the first says nothing of a partition")
  void tooShort() {
    int[] all = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int i : all) {
      bench.store.on(i).stalls();
    }
    bench.fetch(request(500, all));
    assertThat(bench.isPenalised(5)).isTrue();
    assertThat(bench.isPenalised(6)).as("its share was under 50 ms").isFalse();
  }

  @Test
  @DisplayName("FE-20 stalled offsets, and offsets that stall after the read, are stalls")
  void offsets() {
    bench.store.on(0).offsetsStall();
    bench
        .store
        .on(1)
        .offsets(
            call ->
                call == 0
                    ? reactor.core.publisher.Mono.just(Offsets.of(0, 10, 10))
                    : reactor.core.publisher.Mono.<Offsets>never());
    bench.store.on(2).fails(new IllegalStateException("torn"));
    bench.fetch(request(500, 0, 1, 2));
    assertThat(bench.isPenalised(0)).isTrue();
    assertThat(bench.isPenalised(1)).isTrue();
    assertThat(bench.isPenalised(2)).as("an error is no stall").isFalse();
  }

  @Test
  @DisplayName("HE-11 a client that leaves says nothing of its partitions")
  void cancel() {
    bench.store.on(0).stalls();
    Bench.Answer<FetchResponse> answer = bench.begin(request(500, 0));
    bench.advance(3000);
    answer.subscription.dispose();
    assertThat(bench.isPenalised(0)).isFalse();
  }
}
