package dev.timebound.fetch;

import static dev.timebound.fetch.Bench.request;
import static dev.timebound.fetch.ScriptedStore.partition;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

@DisplayName("A store that admits few reads at a time")
class BoundedStoreTest {
  private static final ReadSpec ALL = new ReadSpec(0, 10_000, true, Isolation.READ_UNCOMMITTED);

  private final SimpleMeterRegistry meters = new SimpleMeterRegistry();
  private final Bench bench =
      new Bench(settings -> settings.policy(SharePolicy.HALVING), this::one);
  private final BoundedStore bounded = (BoundedStore) bench.served;

  private PartitionStore one(PartitionStore store) {
    return BoundedStore.builder(store, 1).maxWaiting(2).name("disk").meters(meters).build();
  }

  @AfterEach
  void allPermitsAreBack() {
    assertThat(bounded.held()).isZero();
    assertThat(bounded.waiting()).isZero();
    bench.close();
  }

  private Bench.Answer<RecordBatch> read(int partition, double budget) {
    bench.store.on(partition);
    Deadline deadline = Deadline.after(ScriptedStore.duration(budget), bench.time);
    return bench.subscribe(bounded.read(partition(partition), ALL, deadline));
  }

  @Test
  @DisplayName("FE-7 200 ms of waiting out of a budget of 500 ms leave the store 300 ms")
  void charged() {
    bench.store.on(0).takes(200);
    bench.store.on(1).usesItsBudget();
    read(0, 500);
    Bench.Answer<RecordBatch> second = read(1, 500);
    assertThat(bounded.waiting()).isEqualTo(1);
    bench.advance(200);
    assertThat(bench.store.on(1).reads.get(0).at()).isEqualTo(200);
    assertThat(bench.store.on(1).reads.get(0).budget()).isEqualTo(300);
    bench.advance(300);
    assertThat(second.at).isEqualTo(500);
    assertThat(second.items).hasSize(10);
  }

  @Test
  @DisplayName("FE-7 a wait that outlasts the budget ends with it, and never begins")
  void outlasts() {
    bench.store.on(0).stalls();
    Bench.Answer<RecordBatch> first = read(0, 500);
    Bench.Answer<RecordBatch> second = read(1, 500);
    bench.advance(500);
    assertThat(second.error).isInstanceOf(DeadlineExceededException.class);
    assertThat(second.error).hasMessageContaining("disk permit");
    assertThat(bench.store.on(1).reads).isEmpty();
    assertThat(bounded.waiting()).isZero();
    first.subscription.dispose();
  }

  @Test
  @DisplayName("FE-22 a cancel gives the permit back, or leaves the queue")
  void cancel() {
    bench.store.on(0).stalls();
    Bench.Answer<RecordBatch> first = read(0, 500);
    Bench.Answer<RecordBatch> second = read(1, 500);
    Bench.Answer<RecordBatch> third = read(2, 500);
    second.subscription.dispose();
    assertThat(bounded.waiting()).isEqualTo(1);
    first.subscription.dispose();
    assertThat(third.items).as("the permit went to the next").hasSize(10);
  }

  @Test
  @DisplayName("FE-22 a call of another kind waits for its turn, and is not begun before")
  void anotherKind() {
    bench.store.on(0).stalls();
    Bench.Answer<RecordBatch> first = read(0, 500);
    AtomicInteger begun = new AtomicInteger();
    Mono<Integer> append = Mono.fromSupplier(begun::incrementAndGet);
    Bench.Answer<Integer> second = bench.subscribe(bounded.admit(partition(0), append).flux());
    assertThat(begun).hasValue(0);
    assertThat(bounded.waiting()).isEqualTo(1);
    first.subscription.dispose();
    assertThat(second.items).containsExactly(1);
  }

  @Test
  @DisplayName("FE-4 a budget that has passed waits for nothing: the store gives what it holds")
  void zeroBudget() {
    bench.store.on(0).stalls();
    Bench.Answer<RecordBatch> first = read(0, 500);
    assertThat(read(1, 0).items).hasSize(10);
    assertThat(bounded.held()).isEqualTo(1);
    first.subscription.dispose();
  }

  @Test
  @DisplayName("FE-25 more that wait than may is an error of theirs, at once")
  void tooMany() {
    bench.store.on(0).stalls();
    Bench.Answer<RecordBatch> first = read(0, 500);
    Bench.Answer<RecordBatch> second = read(1, 500);
    Bench.Answer<RecordBatch> third = read(2, 500);
    Bench.Answer<RecordBatch> fourth = read(3, 500);
    assertThat(fourth.error)
        .isInstanceOf(RejectedExecutionException.class)
        .hasMessage("disk: 2 calls wait for a permit, as many as maxWaiting allows");
    second.subscription.dispose();
    third.subscription.dispose();
    first.subscription.dispose();
  }

  @Test
  @DisplayName("FE-23 a read abandoned while it waits is counted so, and its partition not blamed")
  void waiting() {
    bench.store.on(0).stalls();
    bench.store.on(1).healthy();
    Bench.Answer<RecordBatch> held = read(0, 60_000);
    // the offsets come without a permit: what waits is the read
    PartitionStore offsetsFree =
        new ForwardingStore(bounded) {
          @Override
          public reactor.core.publisher.Mono<Offsets> offsets(TopicPartition partition) {
            return bench.store.offsets(partition);
          }
        };
    try (PartitionFetcher fetcher =
        PartitionFetcher.builder(offsetsFree)
            .policy(SharePolicy.HALVING)
            .scheduler(bench.time)
            .health(bench.health)
            .name("second")
            .meters(bench.meters)
            .build()) {
      Bench.Answer<FetchResponse> answer = bench.run(fetcher.fetch(request(500, 1).build()));
      assertThat(bench.data(answer, 1).error()).isEqualTo(ErrorCode.NONE);
      assertThat(bench.data(answer, 1).highWatermark()).isEqualTo(10);
      assertThat(answer.at).as("the budget, not the cap").isEqualTo(500);
      assertThat(bench.abandoned("fetch", "waiting")).isEqualTo(1);
      assertThat(bench.isPenalised(1)).isFalse();
    }
    held.subscription.dispose();
  }

  @Test
  @DisplayName("FE-7 a long queue of reads that are done at once is no deep stack")
  void longQueue() {
    BoundedStore wide = BoundedStore.builder(bench.store, 1).build();
    bench.store.on(0).stalls();
    Deadline budget = Deadline.after(ScriptedStore.duration(500), bench.time);
    Bench.Answer<RecordBatch> first = bench.subscribe(wide.read(partition(0), ALL, budget));
    bench.store.on(1).healthy();
    int[] done = new int[1];
    for (int i = 0; i < 10_000; i++) {
      wide.read(partition(1), ALL, budget).doOnComplete(() -> done[0]++).subscribe();
    }
    first.subscription.dispose();
    assertThat(done[0]).isEqualTo(10_000);
    assertThat(wide.held()).isZero();
  }

  @Test
  @DisplayName("FE-7 one partition holds half of the permits at most, and those behind it pass it")
  void maxPerPartition() {
    BoundedStore four = BoundedStore.builder(bench.store, 4).build();
    bench.store.on(0).stalls();
    bench.store.on(1).healthy();
    Deadline budget = Deadline.after(ScriptedStore.duration(500), bench.time);
    List<Bench.Answer<RecordBatch>> stalled = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      stalled.add(bench.subscribe(four.read(partition(0), ALL, budget)));
    }
    assertThat(four.held()).isEqualTo(2);
    assertThat(four.waiting()).isEqualTo(3);
    assertThat(bench.subscribe(four.read(partition(1), ALL, budget)).items).hasSize(10);
    stalled.get(0).subscription.dispose();
    assertThat(four.held()).as("the next of the same partition").isEqualTo(2);
    stalled.forEach(answer -> answer.subscription.dispose());
    assertThat(four.held()).isZero();
    assertThat(four.waiting()).isZero();
  }

  @Test
  @DisplayName("FE-7 what is held and waits is measured")
  void meters() {
    bench.store.on(0).stalls();
    Bench.Answer<RecordBatch> first = read(0, 500);
    Bench.Answer<RecordBatch> second = read(1, 500);
    assertThat(meters.get("timebound.fetch.permits.held").tag("store", "disk").gauge().value())
        .isEqualTo(1);
    assertThat(meters.get("timebound.fetch.permits.waiting").gauge().value()).isEqualTo(1);
    first.subscription.dispose();
    assertThat(second.items).hasSize(10);
    assertThat(meters.get("timebound.fetch.permit.wait").tag("granted", "true").timer().count())
        .isEqualTo(2);
  }

  @Test
  @DisplayName("settings are refused by name, value and expectation")
  void settings() {
    assertThatThrownBy(() -> BoundedStore.builder(bench.store, 0))
        .hasMessage("permits: 0 (expected: >= 1)");
    assertThatThrownBy(() -> BoundedStore.builder(bench.store, 1).maxWaiting(-1))
        .hasMessage("maxWaiting: -1 (expected: >= 0)");
    assertThatThrownBy(() -> BoundedStore.builder(bench.store, 1).maxPerPartition(0))
        .hasMessage("maxPerPartition: 0 (expected: >= 1)");
  }
}
