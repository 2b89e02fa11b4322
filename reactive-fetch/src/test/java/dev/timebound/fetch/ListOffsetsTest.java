package dev.timebound.fetch;

import static dev.timebound.fetch.ScriptedStore.partition;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.publisher.Mono;

@DisplayName("listOffsets")
class ListOffsetsTest {
  private static Bench.Answer<List<ListedOffset>> list(Bench bench, OffsetQuery... queries) {
    return bench.run(bench.fetcher.listOffsets(List.of(queries), Isolation.READ_COMMITTED));
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-16 the ends, by time, an unknown one; in the order asked")
  void finds(SharePolicy policy) {
    try (Bench bench = new Bench(policy)) {
      bench.store.on(0).logStart = 3;
      bench.store.on(1).stable = 6;
      bench.store.on(2).found(Mono.just(new TimestampOffset(5, 1234)));
      IllegalStateException torn = new IllegalStateException("torn");
      bench.store.on(4).fails(torn).offsets(c -> Mono.error(torn));
      bench.store.on(5).found(Mono.just(TimestampOffset.NONE));
      assertThat(
              list(
                      bench,
                      OffsetQuery.earliest(partition(0)),
                      OffsetQuery.latest(partition(1)),
                      OffsetQuery.at(partition(2), 1000),
                      OffsetQuery.latest(partition(3)),
                      OffsetQuery.latest(partition(4)),
                      OffsetQuery.at(partition(5), 1000))
                  .item())
          .containsExactly(
              ListedOffset.found(partition(0), 3, -1),
              ListedOffset.found(partition(1), 6, -1),
              ListedOffset.found(partition(2), 5, 1234),
              ListedOffset.failed(partition(3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, null),
              ListedOffset.failed(partition(4), ErrorCode.STORAGE_ERROR, torn),
              ListedOffset.found(partition(5), -1, -1));
    }
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-16 a stalled one answers a retriable error after its share; the rest is there")
  void stalls(SharePolicy policy) {
    try (Bench bench = new Bench(policy)) {
      bench.store.on(0).found(Mono.never());
      bench.store.on(1).end(7);
      Bench.Answer<List<ListedOffset>> answer =
          list(bench, OffsetQuery.at(partition(0), 5), OffsetQuery.latest(partition(1)));
      ListedOffset stalled = answer.item().get(0);
      assertThat(stalled.error()).isEqualTo(ErrorCode.REQUEST_TIMED_OUT);
      assertThat(stalled.error().isRetriable()).isTrue();
      assertThat(answer.item().get(1).offset()).isEqualTo(7);
      assertThat(answer.at).as("half of its 10 s").isEqualTo(5000);
      assertThat(bench.abandoned("list_offsets", "reading")).isEqualTo(1);
      assertThat(bench.isPenalised(0)).isTrue();
      double before = bench.store.now();
      list(bench, OffsetQuery.at(partition(0), 5), OffsetQuery.latest(partition(1)));
      assertThat(bench.store.on(1).offsetCalls.get(1).at())
          .as("the stalled one is asked last")
          .isEqualTo(before);
    }
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-16 FE-20 one that is held back is only tried, alone too, until its penalty ends")
  void heldBack(SharePolicy policy) {
    try (Bench bench = new Bench(policy)) {
      bench.store.on(0).found(Mono.never());
      OffsetQuery stalled = OffsetQuery.at(partition(0), 5);
      assertThat(list(bench, stalled).at).isEqualTo(10_000);
      assertThat(list(bench, stalled).at).as("as long as is slow").isEqualTo(10_250);
      bench.advance(20_000);
      Bench.Answer<List<ListedOffset>> again = list(bench, stalled);
      assertThat(again.at).isEqualTo(30_500);
      assertThat(again.item().get(0).error()).isEqualTo(ErrorCode.REQUEST_TIMED_OUT);
      bench.advance(9_500);
      assertThat(bench.isPenalised(0)).as("30 s from where it had its share").isFalse();
      assertThat(list(bench, stalled).at).isEqualTo(50_000);
    }
  }

  @Test
  @DisplayName("FE-16 its deadline is its own; what is not reached is told as not in time")
  void deadline() {
    try (Bench bench = new Bench(SharePolicy.EQUAL)) {
      bench.store.on(0).found(Mono.never());
      Bench.Answer<List<ListedOffset>> answer = list(bench, OffsetQuery.at(partition(0), 5));
      assertThat(answer.at).isEqualTo(10_000);
      bench.store.metadata = Mono.never();
      answer = list(bench, OffsetQuery.at(partition(0), 5));
      assertThat(answer.at).isEqualTo(12_500);
      assertThat(answer.item().get(0).error()).isEqualTo(ErrorCode.REQUEST_TIMED_OUT);
    }
  }

  @Test
  @DisplayName("queries are refused by name, value and expectation")
  void refused() {
    try (Bench bench = new Bench(SharePolicy.EQUAL)) {
      assertThatThrownBy(() -> bench.fetcher.listOffsets(List.of(), Isolation.READ_COMMITTED))
          .hasMessage("queries: [] (expected: at least one)");
      OffsetQuery query = OffsetQuery.latest(partition(0));
      assertThatThrownBy(
              () -> bench.fetcher.listOffsets(List.of(query, query), Isolation.READ_COMMITTED))
          .hasMessage("queries: orders-0 twice (expected: each once)");
      assertThatThrownBy(() -> OffsetQuery.at(partition(0), -1))
          .hasMessage("timestamp: -1 (expected: >= 0)");
    }
  }
}
