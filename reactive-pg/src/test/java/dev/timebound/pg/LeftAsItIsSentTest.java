package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresSession;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.reactivestreams.Publisher;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Schedulers;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-16 PG-19 a write given up in the moment that something of it is sent")
class LeftAsItIsSentTest {
  private static final String INSERT = "INSERT INTO left_as_sent VALUES (1) RETURNING n";
  private static final String INSERT_BOUND = "INSERT INTO left_as_sent VALUES ($1) RETURNING n";

  private final Routed routed;
  private final BaseSubscriber<String> caller = new BaseSubscriber<>() {};

  LeftAsItIsSentTest(PostgresReplicaSet servers) {
    this.routed = Routed.on(servers, patient -> patient.cancelGrace(Routed.PATIENT_GRACE));
  }

  @BeforeEach
  void table() {
    routed.servers.primary().execute("CREATE TABLE IF NOT EXISTS left_as_sent (n int)");
    routed.servers.primary().execute("TRUNCATE left_as_sent");
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  private void nothingIsTaken() {
    eventually(
        () -> assertThat(routed.writerPool.getMetrics().orElseThrow().acquiredSize()).isZero());
    eventually(
        () ->
            assertThat(routed.sessions(routed.servers.primary()))
                .isNotEmpty()
                .noneMatch(PostgresSession::isRunning)
                .noneMatch(PostgresSession::isIdleInTransaction));
    assertThat(routed.servers.primary().value("SELECT count(*) FROM left_as_sent")).isEqualTo("0");
  }

  private void left(String call, Function<Connection, Publisher<String>> work) {
    Hooked writer = Hooked.before(routed.writerPool, call, caller::dispose);
    try (RoutedDatabase db =
        RoutedDatabase.builder().writer(writer).cancelGrace(Routed.PATIENT_GRACE).build()) {
      db.write(work).subscribe(caller);
      eventually(() -> assertThat(caller.isDisposed()).isTrue());
      nothingIsTaken();
      assertThat(writer.calls).endsWith("close");
    }
  }

  @Test
  @DisplayName("PG-16 its BEGIN: no session is left in transaction")
  void begin() {
    left("beginTransaction", rows(INSERT));
  }

  @Test
  @DisplayName("PG-16 PG-19 a statement of it: it is rolled back with the rest, not run by itself")
  void statement() {
    left("INSERT", rows(INSERT));
  }

  @Test
  @DisplayName("PG-16 PG-19 a statement with parameters, which is sent when its rows are asked for")
  void lateStatement() {
    left(
        "none",
        c ->
            Flux.from(c.createStatement(INSERT_BOUND).bind(0, 1).execute())
                // else its result comes while the execution is still being sent
                .publishOn(Schedulers.parallel())
                .concatMap(
                    result -> {
                      caller.dispose();
                      return result.map((row, metadata) -> String.valueOf(row.get(0)));
                    }));
  }

  @Test
  @DisplayName(
      "PG-16 PG-19 a read's statement with parameters is not sent to whoever has its session")
  void lateRead() {
    routed.warm();
    routed
        .db
        .read(
            c ->
                Flux.from(rows("SELECT 1").apply(c))
                    .thenMany(
                        Flux.from(
                            c.createStatement("SELECT pg_sleep($1)::text").bind(0, 60).execute()))
                    .concatMap(
                        result -> {
                          caller.dispose();
                          return result.map((row, metadata) -> String.valueOf(row.get(0)));
                        }))
        .subscribe(caller);
    eventually(() -> assertThat(caller.isDisposed()).isTrue());
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
    assertThat(routed.sessions(routed.servers.standby()))
        .isNotEmpty()
        .noneMatch(PostgresSession::isRunning);
    assertThat(routed.closed(CloseReason.CANCELLED)).isZero();
  }

  @Test
  @DisplayName("PG-16 PG-19 a statement of a read that has ended is refused, and sent nowhere")
  void behindTheEnd() {
    routed.warm();
    AtomicReference<Connection> kept = new AtomicReference<>();
    routed
        .db
        .read(
            c -> {
              kept.set(c);
              return rows("SELECT 1").apply(c);
            })
        .blockLast(Routed.BOUND);
    assertThatThrownBy(() -> Flux.from(rows("SELECT 2").apply(kept.get())).blockLast(Routed.BOUND))
        .hasMessage("the read-only transaction has ended");
  }

  @Test
  @DisplayName("PG-16 a thousand times at every stage: no session in transaction, none taken")
  void thousandTimes() throws InterruptedException {
    SplittableRandom random = new SplittableRandom(16);
    int rounds = 1_000;
    CountDownLatch over = new CountDownLatch(rounds);
    Flux.range(0, rounds)
        .flatMap(
            i ->
                routed
                    .db
                    .write(i % 2 == 0 ? rows("SELECT 1") : rows("SELECT $1::int", i))
                    .take(Duration.ofNanos(random.nextInt(4_000_000)))
                    .count()
                    .doFinally(end -> over.countDown()),
            12)
        .subscribe();
    over.await();
    nothingIsTaken();
  }
}
