package dev.timebound.fetch;

import static dev.timebound.fetch.Bench.request;
import static dev.timebound.fetch.ScriptedStore.partition;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Mono;

@DisplayName("FE-9 parallel")
class ParallelTest {
  private final Bench bench = new Bench(settings -> settings);

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  private static int[] upTo(int count) {
    int[] all = new int[count];
    for (int i = 0; i < count; i++) {
      all[i] = i;
    }
    return all;
  }

  @Nested
  @DisplayName("how many at once")
  class AtOnce {
    @Test
    @DisplayName(
        "FE-9 at most 8; one past 250 ms counts no more, so that stalled ones hold no place")
    void eight() {
      for (int i = 0; i < 20; i++) {
        bench.store.on(i).stalls();
      }
      Bench.Answer<FetchResponse> answer = bench.begin(request(2000, upTo(20)));
      assertThat(bench.store.active()).isEqualTo(8);
      bench.advance(249.999);
      assertThat(bench.store.active()).isEqualTo(8);
      bench.advance(0.001);
      assertThat(bench.store.active()).isEqualTo(16);
      bench.advance(250);
      assertThat(bench.store.active()).isEqualTo(20);
      answer.subscription.dispose();
    }

    @Test
    @DisplayName("FE-9 at most 64 with those that are past it")
    void sixtyFour() {
      for (int i = 0; i < 80; i++) {
        bench.store.on(i).stalls();
      }
      Bench.Answer<FetchResponse> answer = bench.begin(request(20_000, upTo(80)));
      bench.advance(5000);
      assertThat(bench.store.active()).isEqualTo(64);
      answer.subscription.dispose();
    }

    @Test
    @DisplayName("FE-9 each has the whole time left as its cap, and FE-3's budget")
    void capAndBudget() {
      bench.store.on(0).healthy();
      bench.store.on(1).healthy();
      bench.fetch(request(500, 0, 1));
      ScriptedStore.Call read = bench.store.on(0).reads.get(0);
      assertThat(read.cap()).isEqualTo(5500);
      assertThat(read.budget()).isEqualTo(500);
    }
  }

  @Test
  @DisplayName("FE-9 FE-25 offsets that are cut, and complete for it, are no error of the store's")
  void completesAsItIsCut() {
    bench.store.on(0).healthy();
    bench.store.on(1).offsets(call -> new CompletesOnCancel());
    PartitionData cut = bench.fetch(request(500, 0, 1)).item().partition(partition(1));
    assertThat(cut.cause()).isNull();
    assertThat(cut.error()).isEqualTo(ErrorCode.NONE);
    assertThat(cut.highWatermark()).isEqualTo(-1);
  }

  /** As an operator does that is cancelled while its value is on its way. */
  private static final class CompletesOnCancel extends Mono<Offsets> {
    @Override
    public void subscribe(CoreSubscriber<? super Offsets> actual) {
      actual.onSubscribe(
          new Subscription() {
            @Override
            public void request(long n) {}

            @Override
            public void cancel() {
              actual.onComplete();
            }
          });
    }
  }

  @Nested
  @DisplayName("a store that takes its time to say where a partition ends")
  class SlowOffsets {
    private void offsetsTake(double ms) {
      bench
          .store
          .on(0)
          .offsets(
              call ->
                  Mono.delay(ScriptedStore.duration(ms), bench.time)
                      .map(passed -> bench.store.on(0).current()));
    }

    @Test
    @DisplayName("FE-10 is not asked again where the answer would be cut off by the grace")
    void notAgain() {
      offsetsTake(30);
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0));
      assertThat(bench.data(answer, 0).batches()).hasSize(10);
      assertThat(bench.data(answer, 0).highWatermark()).isEqualTo(10);
      assertThat(bench.store.on(0).offsetCalls).hasSize(1);
      assertThat(bench.store.on(0).cancelled).isZero();
      assertThat(bench.abandoned("offset_stage", "reading")).isZero();
      assertThat(answer.at).as("nor waited for").isEqualTo(30);
    }

    @Test
    @DisplayName(
        "FE-10 is asked again where there is the time: within the grace, or below min_bytes")
    void again() {
      offsetsTake(20);
      bench.fetch(request(500, 0));
      assertThat(bench.store.on(0).offsetCalls).hasSize(2);
      bench.store.on(0).offsetCalls.clear();
      offsetsTake(30);
      bench.fetch(request(500, 0).minBytes(10_000));
      assertThat(bench.store.on(0).offsetCalls).hasSizeGreaterThan(1);
    }
  }

  @Nested
  @DisplayName("the answer")
  class TheAnswer {
    @Test
    @DisplayName("FE-9 once min_bytes are in, what runs gets 20 ms, and what it has is answered")
    void grace() {
      bench.store.on(0).stallsAfter(2);
      bench.store.on(1).takes(5);
      bench.store.on(2).takes(24);
      bench.store.on(3).takes(26);
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1, 2, 3).minBytes(1000));
      assertThat(answer.at).isEqualTo(25);
      assertThat(bench.data(answer, 0).batches()).hasSize(2);
      assertThat(bench.data(answer, 1).batches()).hasSize(10);
      assertThat(bench.data(answer, 2).batches()).hasSize(10);
      assertThat(bench.data(answer, 3).batches()).isEmpty();
      assertThat(bench.store.on(3).cancelled).isEqualTo(1);
    }

    @Test
    @DisplayName("FE-9 once all have answered it goes at once")
    void noGraceForNobody() {
      bench.store.on(0).takes(3);
      bench.store.on(1).takes(5);
      assertThat(bench.fetch(request(500, 0, 1)).at).isEqualTo(5);
    }

    @Test
    @DisplayName(
        "FE-9 FE-20 from the next request on a stalled one costs nothing, save one more"
            + " grace 250 ms later")
    void penalised() {
      bench.store.on(0).stalls();
      for (int i = 1; i < 10; i++) {
        bench.store.on(i).takes(5);
      }
      assertThat(bench.fetch(request(500, upTo(10))).at).isEqualTo(25);
      costNothing();
      bench.advance(250);
      double before = bench.store.now();
      assertThat(bench.fetch(request(500, upTo(10))).at - before).isEqualTo(25);
      assertThat(bench.isPenalised(0)).isTrue();
      bench.advance(250);
      costNothing();
    }

    private void costNothing() {
      for (int round = 0; round < 3; round++) {
        double before = bench.store.now();
        Bench.Answer<FetchResponse> answer = bench.fetch(request(500, upTo(10)));
        assertThat(answer.at - before).as("all healthy ones, in two waves of reads").isEqualTo(10);
        for (int i = 1; i < 10; i++) {
          assertThat(bench.data(answer, i).batches()).hasSize(10);
        }
      }
    }

    /** Its second cut is the stall. */
    private void stall() {
      bench.fetch(request(500, 0, 1));
      bench.advance(250);
      bench.fetch(request(500, 0, 1));
      assertThat(bench.isPenalised(0)).isTrue();
    }

    @Test
    @DisplayName(
        "FE-9 FE-20 FE-23 one cut is no stall: not penalised, not warned of; read with a"
            + " grace again after 250 ms")
    void slowOnce() {
      bench.store.on(0).takes(60);
      bench.store.on(1).takes(5);
      try (Logged logged = Logged.of(PartitionFetcher.class)) {
        assertThat(bench.fetch(request(500, 0, 1)).at).isEqualTo(25);
        assertThat(bench.isPenalised(0)).isFalse();
        assertThat(logged.warnings()).isEmpty();
        assertThat(logged.debugs().get(0).getFormattedMessage())
            .isEqualTo(
                "fetch read cut: topic=orders partition=0 offset=0 operation=fetch stage=reading");
        assertThat(bench.abandoned("fetch", "reading")).isEqualTo(1);
        bench.store.on(0).takes(20); // warm by now
        assertThat(bench.data(bench.fetch(request(500, 0, 1)), 0).batches()).isEmpty();
        bench.advance(250);
        assertThat(bench.data(bench.fetch(request(500, 0, 1)), 0).batches()).hasSize(10);
        bench.store.on(0).takes(60);
        bench.fetch(request(500, 0, 1));
        assertThat(bench.isPenalised(0)).as("it has answered between").isFalse();
        assertThat(logged.warnings()).isEmpty();
      }
    }

    @Test
    @DisplayName("FE-20 FE-23 cut again with no answer between it has stalled, and is told of")
    void cutTwice() {
      bench.store.on(0).stalls();
      bench.store.on(1).takes(5);
      try (Logged logged = Logged.of(PartitionFetcher.class)) {
        stall();
        assertThat(logged.warnings()).hasSize(1);
      }
    }

    @Test
    @DisplayName("FE-23 a cut while the offsets are read again is none to be warned of")
    void cutAgain() {
      bench
          .store
          .on(0)
          .takes(5)
          .offsets(
              call ->
                  call == 0
                      ? reactor.core.publisher.Mono.just(Offsets.of(0, 10, 10))
                      : reactor.core.publisher.Mono.<Offsets>never());
      try (Logged logged = Logged.of(PartitionFetcher.class)) {
        assertThat(bench.fetch(request(500, 0)).at).isEqualTo(25);
        assertThat(logged.warnings()).isEmpty();
        assertThat(bench.abandoned("offset_stage", "reading")).isEqualTo(1);
      }
    }

    @Test
    @DisplayName(
        "FE-20 FE-22 beside busy ones a penalised one is tried once in 250 ms, not in every"
            + " request")
    void tried() {
      bench.store.on(0).stalls();
      bench.store.on(1).takes(5);
      stall();
      int before = bench.store.on(0).reads.size();
      for (int i = 0; i < 20; i++) {
        bench.fetch(request(500, 0, 1));
      }
      assertThat(bench.store.on(0).reads).hasSize(before + 1);
      bench.advance(250);
      bench.fetch(request(500, 0, 1));
      assertThat(bench.store.on(0).reads).hasSize(before + 2);
    }

    @Test
    @DisplayName("FE-14 FE-20 where the others bring nothing, or are slow, a penalised one is read")
    void triedAtOnce() {
      bench.store.on(0).stalls();
      bench.store.on(1).takes(5);
      stall();
      bench.fetch(request(500, 0, 1));
      int before = bench.store.on(0).reads.size();
      bench.store.on(1).end(0).tells();
      Bench.Answer<FetchResponse> quiet = bench.begin(request(100, 0, 1));
      bench.advance(20);
      assertThat(bench.store.on(0).reads).hasSize(before + 1);
      quiet.subscription.dispose();
      bench.store.on(2).stalls();
      Bench.Answer<FetchResponse> slow = bench.begin(request(2000, 0, 2));
      bench.advance(200);
      assertThat(bench.store.on(0).reads).hasSize(before + 1);
      bench.advance(50);
      assertThat(bench.store.on(0).reads).hasSize(before + 2);
      slow.subscription.dispose();
    }

    @Test
    @DisplayName("FE-20 one cut is none either where it came late; the next one is a stall")
    void cutLate() {
      bench.store.on(0).stalls();
      bench.store.on(1).takes(400);
      bench.fetch(request(500, 0, 1));
      assertThat(bench.isPenalised(0)).isFalse();
      bench.advance(250);
      bench.fetch(request(500, 0, 1));
      assertThat(bench.isPenalised(0)).isTrue();
    }

    @Test
    @DisplayName("FE-20 a cut long ago says nothing of one of today")
    void longAgo() {
      bench.store.on(0).stalls();
      bench.store.on(1).takes(5);
      bench.fetch(request(500, 0, 1));
      bench.advance(30_000);
      bench.fetch(request(500, 0, 1));
      assertThat(bench.isPenalised(0)).isFalse();
    }

    @Test
    @DisplayName("FE-20 beside others of its own speed a penalised one that is well again answers")
    void wellAgain() {
      bench.store.on(0).stalls();
      bench.store.on(1).takes(5);
      stall();
      bench.store.on(0).takes(4);
      bench.fetch(request(500, 0, 1));
      assertThat(bench.isPenalised(0)).isFalse();
    }

    @Test
    @DisplayName("FE-20 it has until the others are done, which costs them nothing")
    void untilOthersAreDone() {
      bench.store.on(0).stalls();
      bench.store.on(1).takes(5);
      stall();
      bench.store.on(0).takes(11);
      bench.store.on(2).takes(12);
      double begin = bench.store.now();
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1, 2));
      assertThat(answer.at - begin).isEqualTo(12);
      assertThat(bench.data(answer, 0).batches()).hasSize(10);
      assertThat(bench.isPenalised(0)).isFalse();
    }

    @Test
    @DisplayName("FE-20 a cut without a grace is no further stall: the penalty ends in its time")
    void penaltyEnds() {
      bench.store.on(0).stalls();
      bench.store.on(1).takes(30);
      stall();
      for (int i = 0; i < 28; i++) {
        bench.advance(990);
        bench.fetch(request(500, 0, 1));
      }
      bench.advance(1600);
      assertThat(bench.isPenalised(0)).isFalse();
    }

    @Test
    @DisplayName("FE-9 where min_bytes never come it goes at the end of max_wait")
    void endOfMaxWait() {
      bench.store.on(0).stalls();
      bench.store.on(1).end(1).tells();
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1).minBytes(1000));
      assertThat(answer.at).isEqualTo(500);
      assertThat(bench.data(answer, 1).batches()).hasSize(1);
    }

    @Test
    @DisplayName("FE-9 an append to another is answered while one stalls")
    void appendWhileStalled() {
      bench.store.on(0).stalls();
      bench.store.on(1).end(0).tells();
      Bench.Answer<FetchResponse> answer = bench.begin(request(500, 0, 1));
      bench.advance(100);
      bench.store.on(1).append(1);
      bench.advance(20);
      assertThat(answer.at).isEqualTo(120);
      assertThat(bench.data(answer, 1).batches()).hasSize(1);
    }

    @Test
    @DisplayName("FE-24 with nothing read at all it is held for the first that comes")
    void held() {
      bench.store.on(0).takes(2000);
      bench.store.on(1).takes(2010);
      bench.store.on(2).stalls();
      bench.store.on(3).end(0);
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1, 2, 3));
      assertThat(answer.at).isEqualTo(2020);
      assertThat(bench.data(answer, 0).batches()).hasSize(10);
      assertThat(bench.data(answer, 1).batches()).hasSize(10);
    }

    @Test
    @DisplayName("FE-14 with max_wait 0 every partition is asked")
    void noWait() {
      for (int i = 0; i < 20; i++) {
        bench.store.on(i).takes(5);
      }
      Bench.Answer<FetchResponse> answer = bench.fetch(request(0, upTo(20)));
      for (int i = 0; i < 20; i++) {
        assertThat(bench.data(answer, i).batches()).hasSize(10);
      }
      assertThat(answer.at).isEqualTo(15);
    }

    @Test
    @DisplayName("FE-15 in the order of the request, whatever was ready first")
    void order() {
      bench.store.on(0).takes(9);
      bench.store.on(1).takes(5);
      bench.store.on(2).takes(1);
      assertThat(bench.fetch(request(500, 1, 0, 2)).item().partitions())
          .extracting(PartitionData::partition)
          .containsExactly(partition(1), partition(0), partition(2));
    }

    @Test
    @DisplayName("FE-11 offsets that stall are cut by the grace too")
    void offsetsStall() {
      bench.store.on(0).offsetsStall();
      bench.store.on(1).healthy();
      Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0, 1));
      assertThat(answer.at).isEqualTo(20);
      assertThat(bench.data(answer, 0).error()).isEqualTo(ErrorCode.NONE);
      assertThat(bench.data(answer, 0).highWatermark()).isEqualTo(-1);
      assertThat(bench.abandoned("offset_stage", "reading")).isEqualTo(1);
      bench.advance(250);
      bench.fetch(request(500, 0, 1));
      assertThat(bench.isPenalised(0)).isTrue();
    }
  }
}
