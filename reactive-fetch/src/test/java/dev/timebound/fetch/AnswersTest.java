package dev.timebound.fetch;

import static dev.timebound.fetch.Bench.request;
import static dev.timebound.fetch.ScriptedStore.batch;
import static dev.timebound.fetch.ScriptedStore.partition;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@DisplayName("What a partition answers")
class AnswersTest {
  private final Bench bench = new Bench(SharePolicy.HALVING);

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  private static List<Long> offsets(PartitionData data) {
    return data.batches().stream().map(RecordBatch::baseOffset).toList();
  }

  @Nested
  @DisplayName("FE-10 records stall")
  class RecordsStall {
    @Test
    @DisplayName("FE-10 what was read is answered without an error, its bytes stay counted")
    void kept() {
      bench.store.on(0).stallsAfter(3);
      bench.store.on(1).healthy();
      Bench.Answer<FetchResponse> answer =
          bench.fetch(request(500, 0, 1).minBytes(10_000).maxBytes(500));
      PartitionData stalled = bench.data(answer, 0);
      assertThat(stalled.error()).isEqualTo(ErrorCode.NONE);
      assertThat(offsets(stalled)).containsExactly(0L, 1L, 2L);
      assertThat(bench.data(answer, 1).sizeInBytes()).isEqualTo(200);
      assertThat(answer.at).isEqualTo(2750);
    }

    @Test
    @DisplayName("FE-10 the offsets are the ones read before, the watermark raised to cover it")
    void raised() {
      bench.store.on(0).offsets(call -> Mono.just(Offsets.of(0, 1, 1))).stallsAfter(3);
      PartitionData data = bench.data(bench.fetch(request(500, 0)), 0);
      assertThat(data.highWatermark()).isEqualTo(3);
      assertThat(data.lastStableOffset()).as("nothing is known of it").isEqualTo(1);
      assertThat(data.logStartOffset()).isZero();
      assertThat(bench.store.on(0).offsetCalls).as("not asked again after a stall").hasSize(1);
    }

    @Test
    @DisplayName("FE-10 under READ_COMMITTED the last stable offset is raised too")
    void stable() {
      bench.store.on(0).offsets(call -> Mono.just(Offsets.of(0, 2, 1))).stallsAfter(3);
      PartitionData data =
          bench.data(bench.fetch(request(500, 0).isolation(Isolation.READ_COMMITTED)), 0);
      assertThat(data.highWatermark()).isEqualTo(3);
      assertThat(data.lastStableOffset()).isEqualTo(3);
    }
  }

  @Nested
  @DisplayName("FE-10 offsets after a read")
  class OffsetsAgain {
    @Test
    @DisplayName("FE-10 they are read again, under what is left of the share")
    void again() {
      bench.store.on(0).offsets(call -> Mono.just(Offsets.of(call, 10 + call, 10 + call)));
      bench.store.on(1).end(0);
      PartitionData data = bench.data(bench.fetch(request(500, 0, 1)), 0);
      assertThat(data.highWatermark()).isEqualTo(11);
      assertThat(data.logStartOffset()).isEqualTo(1);
      assertThat(bench.store.on(0).offsetCalls.get(1).cap()).isEqualTo(2750);
    }

    @Test
    @DisplayName("FE-10 where that stalls the first ones are answered, raised, at both isolations")
    void stalled() {
      for (Isolation isolation : Isolation.values()) {
        ScriptedStore.Script script = bench.store.on(isolation.ordinal());
        script.offsets(call -> call == 0 ? Mono.just(Offsets.of(0, 2, 1)) : Mono.<Offsets>never());
        Bench.Answer<FetchResponse> answer =
            bench.fetch(request(500, isolation.ordinal()).isolation(isolation));
        PartitionData data = bench.data(answer, isolation.ordinal());
        assertThat(data.batches()).hasSize(10);
        assertThat(data.highWatermark()).isEqualTo(10);
        assertThat(data.lastStableOffset())
            .isEqualTo(isolation == Isolation.READ_COMMITTED ? 10 : 1);
      }
      assertThat(bench.abandoned("offset_stage", "reading")).isEqualTo(2);
    }

    @Test
    @DisplayName("FE-10 where that fails the first ones are answered")
    void failed() {
      bench
          .store
          .on(0)
          .offsets(
              call ->
                  call == 0
                      ? Mono.just(Offsets.of(0, 10, 10))
                      : Mono.<Offsets>error(new IllegalStateException("no")));
      PartitionData data = bench.data(bench.fetch(request(500, 0)), 0);
      assertThat(data.error()).isEqualTo(ErrorCode.NONE);
      assertThat(data.batches()).hasSize(10);
    }
  }

  @Nested
  @DisplayName("FE-11 offsets stall")
  class OffsetsStall {
    @Test
    @DisplayName("FE-11 no error, no records, -1 for all three; neither read nor asked again")
    void stalled() {
      bench.store.on(0).offsetsStall();
      bench.store.on(1).end(5);
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1));
      PartitionData stalled = bench.data(answer, 0);
      assertThat(stalled.error()).isEqualTo(ErrorCode.NONE);
      assertThat(stalled.batches()).isEmpty();
      assertThat(stalled.highWatermark()).isEqualTo(-1);
      assertThat(stalled.lastStableOffset()).isEqualTo(-1);
      assertThat(stalled.logStartOffset()).isEqualTo(-1);
      assertThat(bench.store.on(0).reads).isEmpty();
      assertThat(bench.store.on(0).offsetCalls).hasSize(1);
      assertThat(bench.store.on(0).cancelled).isEqualTo(1);
      assertThat(bench.data(answer, 1).batches()).hasSize(5);
      assertThat(answer.at).as("under the first one's share").isEqualTo(2750);
      assertThat(bench.abandoned("offset_stage", "reading")).isEqualTo(1);
    }
  }

  @Nested
  @DisplayName("FE-12 errors of a partition's own")
  class Errors {
    @Test
    @DisplayName("FE-12 outside the partition: out of range, for this partition only")
    void outOfRange() {
      bench.store.on(0).logStart = 5;
      bench.store.on(1).end(10);
      FetchRequest.Builder request = request(500, 1).partition(partition(0), 4);
      bench.store.on(2).end(10);
      request.partition(partition(2), 11);
      Bench.Answer<FetchResponse> answer = bench.fetch(request);
      assertThat(bench.data(answer, 0).error()).isEqualTo(ErrorCode.OFFSET_OUT_OF_RANGE);
      assertThat(bench.data(answer, 2).error()).isEqualTo(ErrorCode.OFFSET_OUT_OF_RANGE);
      assertThat(bench.data(answer, 1).batches()).hasSize(10);
      assertThat(bench.store.on(0).reads).isEmpty();
    }

    @Test
    @DisplayName("FE-12 both ends of the partition are inside")
    void inside() {
      bench.store.on(0).logStart = 5;
      FetchRequest.Builder request = FetchRequest.builder().minBytes(0).partition(partition(0), 5);
      assertThat(bench.data(bench.fetch(request), 0).batches()).hasSize(5);
      request = FetchRequest.builder().minBytes(0).partition(partition(0), 10);
      assertThat(bench.data(bench.fetch(request), 0).error()).isEqualTo(ErrorCode.NONE);
    }

    @Test
    @DisplayName("FE-12 a lagging replica's word is not enough: the authority is asked")
    void replica() {
      ScriptedStore.Script script = bench.store.on(0);
      script.offsets(call -> Mono.just(Offsets.of(0, 3, 3).ofReplica()));
      script.authority(Mono.just(Offsets.of(0, 10, 10)));
      Bench.Answer<FetchResponse> answer =
          bench.fetch(FetchRequest.builder().partition(partition(0), 8));
      assertThat(bench.data(answer, 0).error()).isEqualTo(ErrorCode.NONE);
      assertThat(offsets(bench.data(answer, 0))).containsExactly(8L, 9L);
      assertThat(script.authoritativeCalls).isEqualTo(1);
      script.authority(Mono.just(Offsets.of(0, 7, 7)));
      answer = bench.fetch(FetchRequest.builder().partition(partition(0), 8));
      assertThat(bench.data(answer, 0).error()).isEqualTo(ErrorCode.OFFSET_OUT_OF_RANGE);
    }

    @Test
    @DisplayName("FE-12 where the authority does not answer, nothing is out of range")
    void noAuthority() {
      ScriptedStore.Script script = bench.store.on(0);
      script.offsets(call -> Mono.just(Offsets.of(0, 3, 3).ofReplica()));
      script.authority(Mono.never());
      Bench.Answer<FetchResponse> answer =
          bench.fetch(FetchRequest.builder().partition(partition(0), 8));
      assertThat(bench.data(answer, 0).error()).isEqualTo(ErrorCode.NONE);
      assertThat(bench.data(answer, 0).highWatermark()).isEqualTo(-1);
    }

    @Test
    @DisplayName("FE-12 an unknown partition: its error, for this partition only")
    void unknown() {
      bench.store.on(1).end(10);
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1));
      assertThat(bench.data(answer, 0).error()).isEqualTo(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
      assertThat(bench.data(answer, 1).batches()).hasSize(10);
    }

    @Test
    @DisplayName("FE-2 an unknown one counts until it is passed: before it, a partition has half")
    void unknownCounts() {
      bench.store.on(0).healthy();
      bench.fetch(request(500, 0, 1));
      assertThat(bench.store.on(0).offsetCalls.get(0).cap()).isEqualTo(2750);
    }

    @Test
    @DisplayName("FE-25 one partition's exception is its own, of whatever it is thrown by")
    void exception() {
      bench.store.on(0).fails(new IllegalStateException("torn"));
      bench.store.on(1).offsets(call -> Mono.error(new IllegalStateException("gone")));
      bench
          .store
          .on(2)
          .read(
              (spec, budget) -> {
                throw new IllegalStateException("thrown");
              });
      bench.store.on(3).offsets(call -> Mono.empty());
      bench.store.on(4).end(10);
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1, 2, 3, 4));
      for (int i = 0; i < 4; i++) {
        assertThat(bench.data(answer, i).error()).isEqualTo(ErrorCode.STORAGE_ERROR);
        assertThat(bench.data(answer, i).cause()).isInstanceOf(IllegalStateException.class);
      }
      assertThat(bench.data(answer, 4).batches()).hasSize(10);
      assertThat(answer.at).isZero();
    }

    @Test
    @DisplayName(
        "FE-25 a batch twice, or one that goes back, is the store's error, not the client's")
    void outOfOrder() {
      bench.store.on(0).read((spec, b) -> Flux.just(batch(0, 100), batch(0, 100), batch(1, 100)));
      bench.store.on(1).read((spec, b) -> Flux.just(batch(5, 100), batch(4, 100)));
      bench.store.on(2).read((spec, b) -> Flux.just(batch(0, 100), batch(7, 100)));
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1, 2));
      assertThat(offsets(bench.data(answer, 0))).containsExactly(0L);
      assertThat(offsets(bench.data(answer, 1))).containsExactly(5L);
      assertThat(offsets(bench.data(answer, 2))).as("a gap is allowed").containsExactly(0L, 7L);
    }

    @Test
    @DisplayName("FE-25 batches that came before an exception are answered")
    void batchesFirst() {
      bench
          .store
          .on(0)
          .read((spec, b) -> Flux.just(batch(0, 100)).concatWith(Mono.error(new Exception("x"))));
      PartitionData data = bench.data(bench.fetch(request(500, 0)), 0);
      assertThat(data.error()).isEqualTo(ErrorCode.NONE);
      assertThat(data.batches()).hasSize(1);
    }
  }

  @Nested
  @DisplayName("FE-13 limits")
  class Limits {
    @Test
    @DisplayName("FE-13 max_bytes and partition_max_bytes are kept")
    void kept() {
      bench.store.on(0).healthy();
      bench.store.on(1).healthy();
      FetchRequest.Builder request =
          FetchRequest.builder()
              .maxBytes(650)
              .partition(partition(0), 0, 400)
              .partition(partition(1), 0, 400);
      Bench.Answer<FetchResponse> answer = bench.fetch(request);
      assertThat(bench.data(answer, 0).sizeInBytes()).isEqualTo(400);
      assertThat(bench.data(answer, 1).sizeInBytes()).isEqualTo(200);
    }

    @Test
    @DisplayName("FE-13 what a store brings beyond the limit is not taken")
    void enforced() {
      bench.store.on(0).read((spec, b) -> Flux.range(0, 10).map(i -> batch(i, 100)));
      FetchRequest.Builder request = FetchRequest.builder().partition(partition(0), 0, 350);
      assertThat(bench.data(bench.fetch(request), 0).sizeInBytes()).isEqualTo(300);
    }

    @Test
    @DisplayName("FE-13 FE-25 the first batch found is returned whatever its size")
    void first() {
      bench.store.on(0).end(0);
      bench.store.on(1).size(5000);
      bench.store.on(2).size(5000);
      FetchRequest.Builder request =
          FetchRequest.builder()
              .maxBytes(1000)
              .partition(partition(0), 0, 100)
              .partition(partition(1), 0, 100)
              .partition(partition(2), 0, 100);
      Bench.Answer<FetchResponse> answer = bench.fetch(request);
      assertThat(offsets(bench.data(answer, 1))).containsExactly(0L);
      assertThat(bench.data(answer, 2).batches()).isEmpty();
    }

    @Test
    @DisplayName("FE-13 a partition at its own limit ends the wait for min_bytes")
    void ownLimit() {
      bench.store.on(0).healthy();
      bench.store.on(1).end(0);
      for (int limit : new int[] {300, 350}) {
        FetchRequest.Builder request =
            FetchRequest.builder()
                .minBytes(1000)
                .partition(partition(0), 0, limit)
                .partition(partition(1), 0);
        double before = bench.store.now();
        Bench.Answer<FetchResponse> answer = bench.fetch(request);
        assertThat(bench.data(answer, 0).sizeInBytes()).isEqualTo(300);
        assertThat(answer.at).isEqualTo(before);
      }
    }
  }
}
