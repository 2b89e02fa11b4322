package dev.timebound.fetch;

import static dev.timebound.fetch.Bench.request;
import static dev.timebound.fetch.ScriptedStore.partition;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Mono;

@DisplayName("A request as a whole")
class WholeRequestTest {
  private final Bench bench = new Bench(SharePolicy.HALVING);

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  private static List<Long> offsets(PartitionData data) {
    return data.batches().stream().map(RecordBatch::baseOffset).toList();
  }

  @Test
  @DisplayName("FE-15 the answer is in the order of the request, whatever was read first")
  void order() {
    for (int i = 0; i < 4; i++) {
      bench.store.on(i).healthy();
    }
    bench.store.on(2).stalls();
    bench.fetch(request(500, 2, 0));
    double before = bench.store.now();
    Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 2, 3, 0, 1));
    assertThat(answer.item().partitions())
        .extracting(PartitionData::partition)
        .containsExactly(partition(2), partition(3), partition(0), partition(1));
    assertThat(bench.store.on(2).offsetCalls.get(1).at())
        .as("read last, though the first asked for")
        .isEqualTo(before);
    assertThat(bench.store.on(3).reads).hasSize(1);
  }

  @Test
  @DisplayName("FE-1 the lesser of max_wait and 5 s more, and the caller's own deadline")
  void callersDeadline() {
    bench.store.on(0).stalls();
    bench.store.on(1).end(3);
    Deadline caller = Deadline.after(ScriptedStore.duration(1000), bench.time);
    Bench.Answer<FetchResponse> answer =
        bench.run(
            Mono.from(
                Deadlines.<FetchResponse>of(caller)
                    .apply(bench.fetcher.fetch(request(500, 0, 1).build()))));
    assertThat(answer.error).isNull();
    assertThat(answer.at).isEqualTo(500);
    assertThat(bench.data(answer, 1).batches()).hasSize(3);
  }

  @Test
  @DisplayName("FE-1 one whose last read runs to the caller's deadline still answers in time")
  void atTheVeryDeadline() {
    bench.store.on(0).stallsAfter(2);
    Deadline caller = Deadline.after(ScriptedStore.duration(1000), bench.time);
    Bench.Answer<FetchResponse> answer =
        bench.run(
            Mono.from(
                Deadlines.<FetchResponse>of(caller)
                    .apply(bench.fetcher.fetch(request(500, 0).build()))));
    assertThat(answer.error).isNull();
    assertThat(bench.data(answer, 0).batches()).hasSize(2);
    assertThat(answer.at).isEqualTo(1000);
  }

  @Test
  @DisplayName("FE-1 a long poll that the caller's deadline ends is answered, not an error")
  void longPollToTheDeadline() {
    bench.store.on(0).end(0);
    bench.store.on(1).end(0).tells();
    Deadline caller = Deadline.after(ScriptedStore.duration(1000), bench.time);
    Bench.Answer<FetchResponse> answer =
        bench.run(
            Mono.from(
                Deadlines.<FetchResponse>of(caller)
                    .apply(bench.fetcher.fetch(request(5000, 0, 1).build()))));
    assertThat(answer.error).isNull();
    assertThat(bench.data(answer, 1).highWatermark()).isZero();
    assertThat(answer.at).isEqualTo(1000);
  }

  @Test
  @DisplayName("FE-1 never more than the longest read deadline")
  void longest() {
    bench.store.on(0).stalls();
    assertThat(bench.fetch(request(60_000, 0)).at).isEqualTo(25_000);
    assertThat(bench.fetch(request(0, 0)).at).isEqualTo(30_000);
  }

  @Test
  @DisplayName("FE-6 nothing is subscribed once the deadline has passed")
  void passed() {
    bench.store.on(0).healthy();
    Deadline caller = Deadline.after(ScriptedStore.duration(0), bench.time);
    Bench.Answer<FetchResponse> answer =
        bench.run(
            bench
                .fetcher
                .fetch(request(500, 0).build())
                .contextWrite(context -> Deadlines.put(context, caller)));
    assertThat(answer.error).isInstanceOf(DeadlineExceededException.class);
    assertThat(bench.store.metadataCalls).isZero();
  }

  @Test
  @DisplayName("FE-6 FE-23 a partition whose turn comes after the deadline is not read at all")
  void notStarted() {
    // all of the time goes to the first one: its share is the whole, and nothing runs beside it
    Bench equal = new Bench(s -> s.policy(SharePolicy.PARALLEL).concurrency(1).maxConcurrency(1));
    try (equal) {
      equal.store.on(0).stalls();
      equal.store.on(1).healthy();
      Bench.Answer<FetchResponse> answer = equal.fetch(request(500, 0, 1));
      assertThat(answer.at).isEqualTo(5500);
      assertThat(equal.store.on(1).offsetCalls).isEmpty();
      assertThat(equal.store.on(1).reads).isEmpty();
      assertThat(equal.data(answer, 1).error()).isEqualTo(ErrorCode.NONE);
      assertThat(equal.data(answer, 1).highWatermark()).isEqualTo(-1);
      assertThat(equal.abandoned("fetch", "not_started")).isEqualTo(1);
      assertThat(equal.isPenalised(1)).isFalse();
    }
  }

  @Test
  @DisplayName("FE-14 where all spend their budgets, none goes unasked")
  void noneUnasked() {
    int[] all = new int[12];
    for (int i = 0; i < all.length; i++) {
      all[i] = i;
      bench.store.on(i).usesItsBudget();
    }
    Bench.Answer<FetchResponse> answer = bench.fetch(request(500, all));
    for (int i : all) {
      assertThat(bench.store.on(i).reads).as("reads of %s", i).hasSize(1);
      assertThat(bench.data(answer, i).error()).isEqualTo(ErrorCode.NONE);
    }
    assertThat(answer.at).isGreaterThan(500).isLessThanOrEqualTo(5500);
  }

  @Test
  @DisplayName("FE-17 metadata that does not come in a quarter of the time: a retriable error")
  void metadata() {
    bench.store.on(0).healthy();
    bench.store.metadata = Mono.never();
    Bench.Answer<FetchResponse> answer = bench.fetch(request(500, 0));
    assertThat(answer.at).isEqualTo(1375);
    assertThat(bench.data(answer, 0).error()).isEqualTo(ErrorCode.STORAGE_ERROR);
    assertThat(bench.data(answer, 0).error().isRetriable()).isTrue();
    bench.store.metadata = Mono.error(new IllegalStateException("no"));
    assertThat(bench.data(bench.fetch(request(500, 0)), 0).error().isRetriable()).isTrue();
  }

  @Test
  @DisplayName("FE-25 a client that left before its request began asks nothing of the store")
  void leftAtOnce() {
    AtomicInteger asked = new AtomicInteger();
    bench.store.metadata = Mono.fromRunnable(asked::incrementAndGet);
    long before = bench.time.getScheduledTaskCount();
    BaseSubscriber<Object> gone =
        new BaseSubscriber<>() {
          @Override
          protected void hookOnSubscribe(Subscription subscription) {
            subscription.cancel();
          }
        };
    bench.fetcher.fetch(request(500, 0).build()).subscribe(gone);
    bench.fetcher.fetchEach(request(500, 0).build()).subscribe(gone);
    bench.advance(10_000);
    assertThat(asked).hasValue(0);
    assertThat(bench.time.getScheduledTaskCount()).as("nor a timer").isEqualTo(before);
  }

  @Test
  @DisplayName("FE-22 FE-25 a client that leaves cancels its reads")
  void cancel() {
    bench.store.on(0).stalls();
    bench.store.on(1).tells();
    Bench.Answer<FetchResponse> answer = bench.begin(request(500, 1, 0).minBytes(100_000));
    bench.advance(10);
    assertThat(bench.store.active()).isEqualTo(1);
    answer.subscription.dispose();
    assertThat(bench.store.active()).isZero();
    assertThat(bench.store.listeners()).isZero();
    assertThat(bench.store.on(0).cancelled).isEqualTo(1);
  }
}
