package dev.timebound.fetch.pg;

import static dev.timebound.fetch.Eventually.eventually;
import static dev.timebound.fetch.pg.PgBench.BOUND;
import static dev.timebound.fetch.pg.PgBench.got;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresSession;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.scheduler.VirtualTimeScheduler;

@DisplayName("Appends to the store in Postgres")
class PgAppendTest {
  private final PgBench bench = PgBench.on(PostgresReplicaSet.shared());

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  private static ByteBuffer bytes(int size) {
    return ByteBuffer.allocate(size);
  }

  @Nested
  @DisplayName("offsets and locks")
  class Appends {
    @Test
    @DisplayName("of many at once each has its own offsets, and a reader beside them sees no gap")
    void raced() {
      TopicPartition partition = bench.newPartition();
      AtomicBoolean over = new AtomicBoolean();
      List<Long> seen = new ArrayList<>();
      Flux<RecordBatch> following =
          Flux.defer(
                  () ->
                      bench.store.read(
                          partition,
                          new ReadSpec(seen.size() * 2L, 1 << 20, true, Isolation.READ_UNCOMMITTED),
                          Deadline.after(BOUND)))
              .doOnNext(batch -> seen.add(batch.baseOffset()))
              .repeat(() -> !over.get() || seen.size() < 400);
      Mono<List<Long>> appends =
          Flux.range(0, 400)
              .flatMap(i -> bench.store.append(partition, bytes(10), 2, i), 8)
              .collectList()
              .doFinally(end -> over.set(true));
      List<Long> bases = got(Mono.zip(appends, following.then(Mono.just(1)))).getT1();
      Long[] all = LongStream.range(0, 400).mapToObj(i -> 2 * i).toArray(Long[]::new);
      assertThat(bases).containsExactlyInAnyOrder(all);
      assertThat(seen).as("in order, each once, none passed over").containsExactly(all);
    }

    @Test
    @DisplayName(
        "what an append of the caller's transaction writes is there with it, or not at all")
    void callersTransaction() {
      TopicPartition partition = bench.newPartition();
      bench.primary.execute("CREATE TABLE IF NOT EXISTS fetch_mine (base bigint)");
      Mono<Long> both =
          bench.database.writeMono(
              connection ->
                  bench
                      .store
                      .lock(connection, partition)
                      .flatMap(
                          locked ->
                              locked
                                  .append(base -> bytes(10), 1, 1)
                                  .then(locked.append(base -> bytes(10), 2, 1))
                                  .flatMap(
                                      base ->
                                          Rows.done(
                                                  connection
                                                      .createStatement(
                                                          "INSERT INTO fetch_mine VALUES ($1)")
                                                      .bind(0, base))
                                              .thenReturn(base))));
      assertThat(got(both)).isEqualTo(1);
      assertThat(bench.primary.value("SELECT base FROM fetch_mine")).isEqualTo("1");
      Mono<Long> failed =
          bench.database.writeMono(
              connection ->
                  bench
                      .store
                      .lock(connection, partition)
                      .flatMap(locked -> locked.append(base -> bytes(10), 1, 1))
                      .then(Mono.error(new IllegalStateException("mine"))));
      assertThatThrownBy(() -> failed.block(BOUND)).hasMessage("mine");
      assertThat(got(bench.store.offsets(partition)).highWatermark()).isEqualTo(3);
      assertThat(bench.bases(partition, 0, 1000, Isolation.READ_UNCOMMITTED))
          .containsExactly(0L, 1L);
      bench.primary.execute("DROP TABLE fetch_mine");
    }

    @Test
    @DisplayName("a partition is locked to its appender's commit; the others are not")
    void locked() throws InterruptedException {
      TopicPartition partition = bench.newPartition();
      TopicPartition other = bench.newPartition();
      CountDownLatch appended = new CountDownLatch(1);
      reactor.core.publisher.Sinks.Empty<Void> commit = reactor.core.publisher.Sinks.empty();
      Disposable first =
          bench
              .database
              .writeMono(
                  connection ->
                      bench
                          .store
                          .lock(connection, partition)
                          .flatMap(locked -> locked.append(base -> bytes(10), 1, 1))
                          .doOnNext(base -> appended.countDown())
                          .delayUntil(base -> commit.asMono()))
              .subscribe();
      assertThat(appended.await(BOUND.toSeconds(), TimeUnit.SECONDS)).isTrue();
      Mono<Long> second = bench.store.append(partition, bytes(10), 1, 1).cache();
      Disposable waiting = second.subscribe();
      assertThat(got(bench.store.append(other, bytes(10), 1, 1))).isZero();
      eventually(() -> assertThat(bench.running()).hasSize(1));
      assertThat(got(bench.store.offsets(partition)).highWatermark()).isZero();
      commit.tryEmitEmpty();
      assertThat(got(second)).isEqualTo(1);
      eventually(() -> assertThat(first.isDisposed()).isTrue());
      eventually(() -> assertThat(waiting.isDisposed()).isTrue());
    }
  }

  @Nested
  @DisplayName("FE-8 who waits for an append")
  class OnAppend {
    @Test
    @DisplayName("FE-8 hears of one that another process commits, and of nothing else")
    void elsewhere() throws InterruptedException {
      TopicPartition partition = bench.newPartition();
      TopicPartition other = bench.newPartition();
      PgStore elsewhere = got(PgStore.builder(bench.database).open());
      assertThat(elsewhere.onAppend(partition, () -> {})).as("it does not listen").isEmpty();
      CountDownLatch heard = new CountDownLatch(1);
      AtomicBoolean wrong = new AtomicBoolean();
      Disposable right = bench.store.onAppend(partition, heard::countDown).orElseThrow();
      Disposable left = bench.store.onAppend(other, () -> wrong.set(true)).orElseThrow();
      got(elsewhere.append(partition, bytes(10), 1, 1));
      assertThat(heard.await(BOUND.toSeconds(), TimeUnit.SECONDS)).isTrue();
      assertThat(wrong).isFalse();
      right.dispose();
      left.dispose();
      elsewhere.close();
    }

    @Test
    @DisplayName("FE-8 is woken when the connection was lost and is back, for what was missed")
    void lost() throws InterruptedException {
      TopicPartition partition = bench.newPartition();
      CountDownLatch heard = new CountDownLatch(1);
      Disposable listening = bench.store.onAppend(partition, heard::countDown).orElseThrow();
      for (PostgresSession session : bench.primary.sessions(bench.application)) {
        if (session.query().startsWith("LISTEN") || session.query().equals("SELECT 1")) {
          bench.primary.execute("SELECT pg_terminate_backend(?)", session.pid());
        }
      }
      assertThat(heard.await(BOUND.toSeconds(), TimeUnit.SECONDS)).isTrue();
      listening.dispose();
    }

    @Test
    @DisplayName("FE-8 a connection gone silent is found out and replaced, and who waits is woken")
    void silent() {
      TopicPartition partition = bench.newPartition();
      VirtualTimeScheduler time = VirtualTimeScheduler.create();
      FaultProxy proxy = bench.primary.proxy();
      PgStore store =
          got(
              PgStore.builder(bench.database)
                  .listening(bench.driver(proxy.port()))
                  .scheduler(time)
                  .open());
      AtomicBoolean heard = new AtomicBoolean();
      Disposable listening = store.onAppend(partition, () -> heard.set(true)).orElseThrow();
      proxy.freezeEstablished();
      eventually(
          () -> {
            time.advanceTimeBy(Duration.ofSeconds(1));
            assertThat(heard).isTrue();
          });
      listening.dispose();
      store.close();
      proxy.close();
      time.dispose();
    }
  }
}
