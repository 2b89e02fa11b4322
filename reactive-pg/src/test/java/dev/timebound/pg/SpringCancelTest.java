package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Springs.WHERE;
import static dev.timebound.pg.Springs.list;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import dev.timebound.test.PostgresSession;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.transaction.reactive.TransactionalOperator;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;

/** That nothing is left each time is seen by {@link Routed#close()}. */
@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-13 PG-16 PG-19 what is given up under Spring leaves nothing behind")
class SpringCancelTest {
  private static final String SLEEP = "SELECT pg_sleep(60)::text";
  private static final Duration BRIEF = Duration.ofSeconds(1);

  private final Routed routed;
  private final Springs spring;
  private final PostgresServer primary;
  private final PostgresServer standby;

  SpringCancelTest(PostgresReplicaSet servers) {
    routed = Routed.on(servers);
    spring = new Springs(routed);
    primary = servers.primary();
    standby = servers.standby();
  }

  @BeforeEach
  void warm() {
    Springs.table(routed.servers, "spring_cancel");
    routed.warm();
    // so that the writer's pool has a connection too
    assertThat(list(spring.all(WHERE))).containsExactly("false");
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  private void sleeps(PostgresServer server) {
    eventually(
        () ->
            assertThat(routed.sessions(server))
                .anyMatch(session -> session.isRunning() && session.query().equals(SLEEP)));
  }

  private int taken() {
    return routed.writerPool.getMetrics().orElseThrow().acquiredSize();
  }

  private List<Integer> pids(PostgresServer server) {
    return routed.sessions(server).stream().map(PostgresSession::pid).sorted().toList();
  }

  @Nested
  class Timeouts {
    @Test
    @DisplayName("PG-13 PG-19 @Transactional(timeout) is a deadline: of a read on the reader")
    void ofAReadOnlyTransaction() {
      TransactionalOperator bounded =
          spring.transaction(
              d -> {
                d.setReadOnly(true);
                d.setTimeout(1);
              });
      assertThatThrownBy(
              () ->
                  list(
                      bounded.transactional(
                          Flux.concat(spring.all("SELECT 1"), spring.all(SLEEP)))))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("1 s");
      assertThat(routed.closed(CloseReason.TIMEOUT)).isZero();
    }

    @Test
    @DisplayName("PG-13 PG-19 and of a write, whose transaction is rolled back")
    void ofAReadWriteTransaction() {
      TransactionalOperator bounded = spring.transaction(d -> d.setTimeout(1));
      assertThatThrownBy(
              () ->
                  list(
                      bounded.transactional(
                          Flux.concat(
                              spring.all("INSERT INTO spring_cancel (n) VALUES (1) RETURNING n"),
                              spring.all(SLEEP)))))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("1 s");
      eventually(() -> assertThat(taken()).isZero());
      assertThat(primary.value("SELECT count(*) FROM spring_cancel")).isEqualTo("0");
      assertThat(list(spring.all(WHERE))).containsExactly("false");
    }

    @Test
    @DisplayName("PG-13 a write whose time is over before its commit is not committed")
    void beforeTheCommit() {
      TransactionalOperator bounded = spring.transaction(d -> d.setTimeout(1));
      assertThatThrownBy(
              () ->
                  bounded
                      .transactional(
                          spring
                              .update("INSERT INTO spring_cancel (n) VALUES (1)")
                              .delayElement(Duration.ofMillis(1_100)))
                      .block(Routed.BOUND))
          .isInstanceOf(DeadlineExceededException.class);
      eventually(() -> assertThat(taken()).isZero());
      assertThat(primary.value("SELECT count(*) FROM spring_cancel")).isEqualTo("0");
    }

    @Test
    @DisplayName("PG-13 PG-16 and of a BEGIN that a frozen writer does not answer")
    void ofABegin() {
      primary.freeze();
      TransactionalOperator bounded = spring.transaction(d -> d.setTimeout(1));
      assertThatThrownBy(() -> list(bounded.transactional(spring.all(WHERE))))
          .isInstanceOf(DeadlineExceededException.class);
      primary.thaw();
    }

    @Test
    @DisplayName("PG-13 the lesser of the timeout and the caller's deadline counts")
    void callersDeadline() {
      TransactionalOperator bounded =
          spring.transaction(
              d -> {
                d.setReadOnly(true);
                d.setTimeout(20);
              });
      assertThatThrownBy(
              () ->
                  list(bounded.transactional(spring.all(SLEEP)).transform(Deadlines.within(BRIEF))))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("deadline of 1 s");
    }

    @Test
    @DisplayName("PG-13 PG-19 a deadline ends a plain statement on the writer, on the server too")
    void ofAPlainStatement() {
      List<Integer> before = pids(primary);
      assertThatThrownBy(() -> list(spring.all(SLEEP).transform(Deadlines.within(BRIEF))))
          .isInstanceOf(DeadlineExceededException.class);
      eventually(() -> assertThat(taken()).isZero());
      eventually(() -> assertThat(pids(primary)).doesNotContainAnyElementsOf(before));
    }
  }

  @Nested
  class MidBegin {
    @Test
    @DisplayName(
        "PG-16 a caller that leaves in mid-BEGIN of a read: its reader frozen, then thawed")
    void ofARead() {
      standby.freeze();
      assertThat(
              spring
                  .readOnly()
                  .transactional(spring.one(WHERE))
                  .timeout(BRIEF)
                  .onErrorReturn("left")
                  .block(Routed.BOUND))
          .isEqualTo("left");
      eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
      assertThat(routed.closed(CloseReason.OPEN_TRANSACTION)).isOne();
      standby.thaw();
    }

    @Test
    @DisplayName("PG-16 of a write: its writer frozen, then thawed")
    void ofAWrite() {
      primary.freeze();
      assertThat(
              spring
                  .readWrite()
                  .transactional(spring.one(WHERE))
                  .timeout(BRIEF)
                  .onErrorReturn("left")
                  .block(Routed.BOUND))
          .isEqualTo("left");
      eventually(() -> assertThat(taken()).isZero());
      primary.thaw();
      assertThat(list(spring.readWrite().transactional(spring.all("SHOW transaction_isolation"))))
          .containsExactly("read committed");
    }

    @Test
    @DisplayName("PG-16 of a write that waits for a connection of the writer's pool")
    void inTheQueue() {
      Flux<String> busy = spring.readWrite().transactional(spring.all("SELECT pg_sleep(4)::text"));
      Disposable all = Flux.merge(busy, busy, busy, busy).subscribe();
      eventually(() -> assertThat(taken()).isEqualTo(Routed.WRITER_SIZE));
      assertThat(
              spring
                  .readWrite()
                  .transactional(spring.one(WHERE))
                  .timeout(BRIEF)
                  .onErrorReturn("left")
                  .block(Routed.BOUND))
          .isEqualTo("left");
      eventually(() -> assertThat(all.isDisposed()).isTrue());
      // what comes for the one that left goes back
      eventually(() -> assertThat(taken()).isZero());
      assertThat(routed.writerPool.getMetrics().orElseThrow().pendingAcquireSize()).isZero();
    }
  }

  @Nested
  class Cancels {
    @Test
    @DisplayName("PG-19 a statement of a read-only transaction is cancelled on the server")
    void ofARead() {
      // behind a statement that was answered: one left before its proof's answer is dropped instead
      Disposable read =
          spring
              .readOnly()
              .transactional(Flux.concat(spring.all("SELECT 1"), spring.all(SLEEP)))
              .subscribe();
      sleeps(standby);
      read.dispose();
      eventually(() -> assertThat(routed.closed(CloseReason.CANCELLED)).isOne());
    }

    @Test
    @DisplayName("PG-19 one of a write transaction too, which is rolled back")
    void ofAWrite() {
      Disposable write =
          spring
              .readWrite()
              .transactional(
                  Flux.concat(
                      spring.all("INSERT INTO spring_cancel (n) VALUES (1) RETURNING n"),
                      spring.all(SLEEP)))
              .subscribe();
      sleeps(primary);
      write.dispose();
      eventually(
          () ->
              assertThat(routed.sessions(primary))
                  .noneMatch(PostgresSession::isRunning)
                  .noneMatch(PostgresSession::isIdleInTransaction));
      assertThat(primary.value("SELECT count(*) FROM spring_cancel")).isEqualTo("0");
    }

    @Test
    @DisplayName("PG-19 one with parameters, which the driver sends late, on either server")
    void withParameters() {
      Flux<String> sleep =
          spring
              .client
              .sql("SELECT pg_sleep($1)::text")
              .bind(0, 60)
              .map((row, metadata) -> String.valueOf(row.get(0)))
              .all();
      for (Flux<String> kind :
          List.of(
              sleep,
              spring.readWrite().transactional(sleep),
              spring.readOnly().transactional(sleep),
              sleep.transform(ReadOnlyRouting.readOnly()))) {
        Disposable given = kind.subscribe();
        List<PostgresServer> both = List.of(primary, standby);
        eventually(
            () ->
                assertThat(both.stream().flatMap(server -> routed.sessions(server).stream()))
                    .anyMatch(s -> s.isRunning() && s.query().contains("pg_sleep")));
        given.dispose();
        eventually(
            () ->
                assertThat(both.stream().flatMap(server -> routed.sessions(server).stream()))
                    .noneMatch(PostgresSession::isRunning)
                    .noneMatch(PostgresSession::isIdleInTransaction));
        eventually(() -> assertThat(taken()).isZero());
      }
    }

    @Test
    @DisplayName("PG-19 the first row is all that is taken: the connection serves on")
    void firstRow() {
      String rows = "SELECT pg_backend_pid() FROM generate_series(1, 1000)";
      try (Routed patient =
          Routed.on(routed.servers, s -> s.cancelGrace(Routed.PATIENT_GRACE)).warm()) {
        Springs of = new Springs(patient);
        String onReader = of.readOnly().transactional(of.all(rows)).next().block(Routed.BOUND);
        eventually(() -> assertThat(patient.gauge("timebound.pg.pool.acquired")).isZero());
        assertThat(
                of.readOnly()
                    .transactional(of.all("SELECT pg_backend_pid()"))
                    .take(1)
                    .blockLast(Routed.BOUND))
            .isEqualTo(onReader);
        String onWriter = of.all(rows).next().block(Routed.BOUND);
        eventually(
            () ->
                assertThat(patient.writerPool.getMetrics().orElseThrow().acquiredSize()).isZero());
        assertThat(list(of.all("SELECT pg_backend_pid()"))).containsExactly(onWriter);
        assertThat(patient.closed(CloseReason.CANCELLED)).isZero();
      }
    }

    @Test
    @DisplayName("PG-16 PG-19 a thousand times at every stage: then nothing is taken, nor runs")
    void atEveryStage() throws InterruptedException {
      routed.reader.delay(Duration.ofMillis(1));
      routed.writer.delay(Duration.ofMillis(1));
      SplittableRandom random = new SplittableRandom(11);
      List<Flux<String>> kinds =
          List.of(
              spring.readOnly().transactional(rowsTwice()),
              spring.readWrite().transactional(rowsTwice()),
              spring
                  .readWrite()
                  .transactional(
                      Flux.concat(
                          spring.all("INSERT INTO spring_cancel DEFAULT VALUES RETURNING id"),
                          spring.nested().transactional(spring.all(WHERE)))),
              spring.all("INSERT INTO spring_cancel DEFAULT VALUES RETURNING id"),
              spring.all("SELECT n FROM generate_series(1, 300) n"),
              spring.readWrite().transactional(bound()),
              bound(),
              bound().transform(ReadOnlyRouting.readOnly()),
              spring.readOnly().transactional(bound()),
              spring
                  .all("SELECT n FROM generate_series(1, 300) n")
                  .transform(ReadOnlyRouting.readOnly()),
              spring
                  .update("INSERT INTO spring_cancel DEFAULT VALUES")
                  .thenMany(spring.readOnly().transactional(spring.all(WHERE)))
                  .transform(ReadYourWrites.scope()));
      int rounds = 1_000;
      CountDownLatch over = new CountDownLatch(rounds);
      Flux.range(0, rounds)
          .flatMap(
              i ->
                  kinds
                      .get(i % kinds.size())
                      .take(Duration.ofNanos(random.nextInt(20_000_000)))
                      .count()
                      .doFinally(end -> over.countDown()),
              12)
          .subscribe();
      over.await();
      eventually(() -> assertThat(taken()).isZero());
      eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
      assertThat(routed.gauge("timebound.pg.pool.pending")).isZero();
      routed.reader.delay(Duration.ZERO);
      routed.writer.delay(Duration.ZERO);
      for (int i = 0; i < Routed.WRITER_SIZE; i++) {
        assertThat(list(spring.readWrite().transactional(spring.all(WHERE))))
            .containsExactly("false");
      }
    }

    private Flux<String> bound() {
      return spring
          .client
          .sql("SELECT n FROM generate_series(1, $1) n")
          .bind(0, 300)
          .map((row, metadata) -> String.valueOf(row.get(0)))
          .all();
    }

    private Flux<String> rowsTwice() {
      return Flux.concat(
          spring.all("SELECT n FROM generate_series(1, 300) n"), spring.all("SELECT 1"));
    }
  }
}
