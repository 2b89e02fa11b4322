package dev.timebound.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;

@DisplayName("tail")
class TailTest {
  private final Bench bench = new Bench(settings -> settings);
  private final TopicPartition partition = ScriptedStore.partition(0);

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  private static List<Long> bases(Bench.Answer<RecordBatch> answer) {
    return answer.items.stream().map(RecordBatch::baseOffset).toList();
  }

  @Test
  @DisplayName("FE-8 follows the end, each record once and in order")
  void follows() {
    ScriptedStore.Script script = bench.store.on(0).end(3).tells();
    Bench.Answer<RecordBatch> answer = bench.subscribe(bench.fetcher.tail(partition, 1));
    assertThat(bases(answer)).containsExactly(1L, 2L);
    bench.advance(12_000);
    script.append(2);
    bench.advance(1);
    assertThat(bases(answer)).containsExactly(1L, 2L, 3L, 4L);
    answer.subscription.dispose();
  }

  @Test
  @DisplayName("a slow consumer holds one Fetch's batches and no more")
  void backpressure() {
    ScriptedStore.Script script = bench.store.on(0).end(100_000).size(1024 * 1024);
    List<RecordBatch> taken = new ArrayList<>();
    BaseSubscriber<RecordBatch> slow =
        new BaseSubscriber<>() {
          @Override
          protected void hookOnSubscribe(Subscription subscription) {}

          @Override
          protected void hookOnNext(RecordBatch batch) {
            taken.add(batch);
          }
        };
    bench.fetcher.tail(partition, 0).subscribe(slow);
    bench.advance(1000);
    assertThat(script.reads).hasSizeLessThanOrEqualTo(1);
    for (int i = 1; i <= 5; i++) {
      slow.request(1);
      assertThat(taken).hasSize(i);
      assertThat(script.reads).hasSizeLessThanOrEqualTo(i + 1);
    }
    slow.cancel();
  }

  @Test
  @DisplayName("FE-10 a stall is waited out, a failing store asked again after a pause")
  void goesOn() {
    ScriptedStore.Script script = bench.store.on(0).end(2).tells().stalls();
    Bench.Answer<RecordBatch> answer = bench.subscribe(bench.fetcher.tail(partition, 0));
    bench.advance(20_000);
    script.fails(new IllegalStateException("torn"));
    bench.advance(20_000);
    assertThat(answer.isOver()).isFalse();
    script.healthy();
    bench.advance(20_000);
    assertThat(bases(answer)).containsExactly(0L, 1L);
    answer.subscription.dispose();
  }

  @Test
  @DisplayName("FE-12 out of range, or unknown, is its error")
  void errors() {
    bench.store.on(0).end(2);
    Bench.Answer<RecordBatch> answer = bench.subscribe(bench.fetcher.tail(partition, 5));
    assertThat(answer.error)
        .isInstanceOfSatisfying(
            FetchException.class,
            e -> assertThat(e.error()).isEqualTo(ErrorCode.OFFSET_OUT_OF_RANGE))
        .hasMessage("orders-0 at 5: OFFSET_OUT_OF_RANGE");
    answer = bench.subscribe(bench.fetcher.tail(ScriptedStore.partition(9), 0));
    assertThat(answer.error).isInstanceOf(FetchException.class);
  }

  private Bench.Answer<RecordBatch> within(double ms) {
    Deadline caller = Deadline.after(ScriptedStore.duration(ms), bench.time);
    Flux<RecordBatch> bounded =
        bench.fetcher.tail(partition, 0).contextWrite(context -> Deadlines.put(context, caller));
    return bench.subscribe(bounded);
  }

  @Test
  @DisplayName("FE-1 the caller's deadline ends it")
  void deadline() {
    bench.store.on(0).end(2).tells();
    Bench.Answer<RecordBatch> answer = within(7000);
    bench.advance(10_000);
    assertThat(answer.items).hasSize(2);
    assertThat(answer.error).isInstanceOf(DeadlineExceededException.class).hasNoCause();
    assertThat(answer.at).isEqualTo(7000);
  }

  @Test
  @DisplayName("FE-1 the caller's deadline ends a pause too, and tells what the store failed with")
  void failing() {
    IllegalStateException torn = new IllegalStateException("torn");
    ScriptedStore.Script script = bench.store.on(0).end(2).tells().fails(torn);
    Bench.Answer<RecordBatch> answer = within(20_000);
    bench.advance(30_000);
    assertThat(answer.error)
        .isInstanceOfSatisfying(
            DeadlineExceededException.class, late -> assertThat(late.operation()).isEqualTo("tail"))
        .hasRootCause(torn);
    assertThat(answer.error)
        .cause()
        .isInstanceOfSatisfying(
            FetchException.class,
            cause -> assertThat(cause.error()).isEqualTo(ErrorCode.STORAGE_ERROR));
    assertThat(answer.at).as("not at the end of a pause").isEqualTo(20_000);
    answer = within(20_000);
    bench.advance(5050); // a Fetch looks for something better to answer until its max_wait is over
    script.healthy();
    bench.advance(20_000);
    assertThat(answer.items).as("asked again after a pause").hasSize(2);
    assertThat(answer.error).as("it has answered since").hasNoCause();
  }
}
