package dev.timebound.demo.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.fetch.ErrorCode;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.PartitionData;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

class RoundsTest {
  private final Rounds rounds = new Rounds();

  @Test
  @DisplayName("a Fetch is a round once it is answered; one that is given up is none")
  void ended() {
    answered(data(0, 0), data(1, 1));
    Disposable waiting = rounds.around(request -> Mono.never()).apply(request()).subscribe();
    waiting.dispose();

    Rounds.Figures figures = rounds.figures();
    assertThat(figures.begun()).isEqualTo(2);
    assertThat(figures.ended()).isEqualTo(1);
    assertThat(figures.meanMillis()).isPositive().isEqualTo(figures.longestMillis());
  }

  @Test
  @DisplayName("one that asked for healthy partitions and brought none of their records is barren")
  void barren() {
    answered(data(0, 3), data(1, 0), data(2, 0));
    answered(data(0, 0), data(1, 0), data(2, 1));
    answered(data(0, 0));

    assertThat(rounds.figures().asked()).isEqualTo(2);
    assertThat(rounds.figures().barren()).isEqualTo(1);
  }

  private void answered(PartitionData... data) {
    Function<FetchRequest, Mono<FetchResponse>> answers =
        request -> Mono.just(new FetchResponse(List.of(data)));
    assertThat(rounds.around(answers).apply(request()).block()).isNotNull();
  }

  private static FetchRequest request() {
    return FetchRequest.builder().partition(new TopicPartition("demo", 0), 0).build();
  }

  private static PartitionData data(int partition, int records) {
    List<RecordBatch> batches =
        records == 0
            ? List.of()
            : List.of(new RecordBatch(ByteBuffer.allocate(9), 0, records - 1, records, -1));
    return new PartitionData(
        new TopicPartition("demo", partition), ErrorCode.NONE, 9, 9, 0, List.of(), batches, null);
  }
}
