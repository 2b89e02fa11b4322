package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadlines;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.R2dbcBadGrammarException;
import io.r2dbc.spi.R2dbcException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-10 PG-11 a read goes to a reader that proves itself, else to the writer")
class RoutedReadTest {
  private static final String WHERE = "SELECT pg_is_in_recovery()";

  private final Routed routed;

  RoutedReadTest(PostgresReplicaSet servers) {
    routed = Routed.on(servers);
  }

  @BeforeEach
  void warm() {
    routed.warm();
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  @Test
  @DisplayName("PG-10 on the reader, read-only, in one snapshot")
  void onTheReader() {
    assertThat(routed.read(WHERE)).containsExactly("true");
    assertThat(
            routed.read(
                "SELECT current_setting('transaction_isolation') || ' '"
                    + " || current_setting('transaction_read_only')"))
        .containsExactly("repeatable read on");
    eventually(() -> assertThat(routed.routes()).isEqualTo("reader proved: 2"));
  }

  @Test
  @DisplayName("PG-11 PG-32 a read that asks for the writer is the writer's, of its places")
  void onTheWriter() {
    ReadOptions writer = ReadOptions.defaults().onWriter();
    assertThat(routed.read(writer, WHERE)).containsExactly("false");
    assertThat(routed.db.readMono(writer, rows("SELECT 7")).block(Routed.BOUND)).isEqualTo("7");
    eventually(() -> assertThat(routed.routes()).isEqualTo("writer writer_requested: 2"));
    assertThat(writer).hasToString("ReadOptions(fence none, waitForFence PT0S, on the writer)");
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  @DisplayName("PG-10 PG-3 in one round trip to the answer, and one more after it")
  void oneTrip(boolean withParameter) {
    String sql = withParameter ? "SELECT $1::int" : "SELECT 7";
    Object[] arguments = withParameter ? new Object[] {7} : new Object[0];
    routed.read(sql, arguments); // its types are known from here on
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.idle")).isOne());
    routed.reader.delay(Duration.ofMillis(100));
    long before = routed.reader.roundTrips();
    AtomicLong atItsEnd = new AtomicLong();
    Flux<String> read = routed.db.read(rows(sql, arguments));
    assertThat(
            read.doOnComplete(() -> atItsEnd.set(routed.reader.roundTrips()))
                .collectList()
                .block(Routed.BOUND))
        .containsExactly("7");
    // the ROLLBACK's own answer is 200 ms away
    assertThat(atItsEnd.get() - before).isOne();
    eventually(() -> assertThat(routed.reader.roundTrips() - before).isEqualTo(2));
  }

  private static Flux<String> severalBindings(Connection c) {
    return Flux.from(
            c.createStatement("SELECT $1::int")
                .bind(0, 7)
                .add()
                .bind(0, 8)
                .add()
                .bind(0, 9)
                .execute())
        .concatMap(result -> result.map((row, metadata) -> String.valueOf(row.get(0))));
  }

  @Test
  @DisplayName("PG-10 of several bindings the first is answered in the proof's round trip")
  void severalBindings() {
    AtomicLong atItsEnd = new AtomicLong();
    Mono<List<String>> read =
        routed
            .db
            .read(RoutedReadTest::severalBindings)
            .doOnComplete(() -> atItsEnd.set(routed.reader.roundTrips()))
            .collectList();
    read.block(Routed.BOUND);
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.idle")).isOne());
    routed.reader.delay(Duration.ofMillis(100));
    long before = routed.reader.roundTrips();
    assertThat(read.block(Routed.BOUND)).containsExactly("7", "8", "9");
    assertThat(atItsEnd.get() - before).isEqualTo(3);
  }

  @Test
  @DisplayName("PG-11 of several bindings each has its rows once where the reader is frozen")
  void severalBindingsFrozen() {
    routed.servers.standby().freeze();
    assertThat(routed.db.read(RoutedReadTest::severalBindings).collectList().block(Routed.BOUND))
        .containsExactly("7", "8", "9");
    eventually(() -> assertThat(routed.routes()).isEqualTo("writer reader_proof_timeout: 1"));
  }

  @Test
  @DisplayName("PG-12 the caller's own error is the caller's, and not tried on the writer")
  void ownError() {
    assertThatThrownBy(() -> routed.read("SELECT nothing FROM nowhere"))
        .isInstanceOf(R2dbcBadGrammarException.class);
    assertThatThrownBy(() -> routed.read("SELECT 1 / $1", 0)).hasMessageContaining("division");
    eventually(() -> assertThat(routed.routes()).isEqualTo("reader proved: 2"));
  }

  @Test
  @DisplayName("PG-11 PG-10 a frozen reader costs the proof timeout, and the writer answers")
  void frozen() {
    routed.servers.standby().freeze();
    assertThat(routed.read(WHERE)).containsExactly("false");
    eventually(() -> assertThat(routed.routes()).isEqualTo("writer reader_proof_timeout: 1"));
  }

  @Test
  @DisplayName("PG-11 PG-10 so it does where the statement has parameters")
  void frozenWithParameter() {
    routed.servers.standby().freeze();
    assertThat(routed.read("SELECT pg_is_in_recovery() WHERE $1 = 1", 1)).containsExactly("false");
    eventually(() -> assertThat(routed.routes()).isEqualTo("writer reader_proof_timeout: 1"));
  }

  @Test
  @DisplayName("PG-10 a brief stall with connections free waits on the reader")
  void briefStall() {
    routed.reader.freezeEstablished();
    Mono<List<String>> read = routed.db.read(rows(WHERE)).collectList();
    Mono<Long> thaw = Mono.delay(Duration.ofMillis(500)).doOnNext(t -> routed.reader.thaw());
    thaw.subscribe();
    assertThat(read.block(Routed.BOUND)).containsExactly("true");
    eventually(() -> assertThat(routed.routes()).isEqualTo("reader proved: 1"));
  }

  @Test
  @DisplayName("PG-11 a session that the server killed is found out, and the writer answers")
  void killed() {
    routed
        .servers
        .standby()
        .query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ?",
            routed.application);
    assertThat(routed.read(WHERE)).hasSize(1);
    eventually(() -> assertThat(routed.routes()).isNotEmpty());
    assertThat(routed.routes())
        .isIn(
            "writer reader_validation_error: 1",
            "writer reader_acquire_timeout: 1",
            "reader proved: 1");
  }

  @Test
  @DisplayName("PG-11 with no reader configured the writer serves")
  void noReader() {
    SimpleMeterRegistry meters = new SimpleMeterRegistry();
    try (RoutedDatabase db =
        RoutedDatabase.builder().writer(routed.writerPool).meters(meters).build()) {
      assertThat(db.read(rows(WHERE)).collectList().block(Routed.BOUND)).containsExactly("false");
      eventually(
          () ->
              assertThat(
                      meters
                          .get("timebound.pg.routes")
                          .tag("reason", "no_reader")
                          .counter()
                          .count())
                  .isOne());
    }
  }

  @Test
  @DisplayName("PG-10 several statements of one read see one snapshot")
  void oneSnapshot() {
    routed.servers.primary().execute("CREATE TABLE IF NOT EXISTS snap (n int)");
    routed.servers.primary().execute("TRUNCATE snap");
    routed.servers.awaitReplay();
    List<String> counts =
        routed
            .db
            .read(
                c ->
                    Flux.concat(
                        rows("SELECT count(*) FROM snap").apply(c),
                        Mono.<String>fromRunnable(
                                () -> {
                                  routed.servers.primary().execute("INSERT INTO snap VALUES (1)");
                                  routed.servers.awaitReplay();
                                })
                            .subscribeOn(Schedulers.boundedElastic()),
                        rows("SELECT count(*) FROM snap").apply(c)))
            .collectList()
            .block(Routed.BOUND);
    assertThat(counts).containsExactly("0", "0");
    assertThat(routed.read("SELECT count(*) FROM snap")).containsExactly("1");
  }

  @Test
  @DisplayName("PG-10 a statement that writes fails, and is not tried on the writer")
  void writes() {
    assertThatThrownBy(() -> routed.read("CREATE TABLE never (n int)"))
        .isInstanceOf(R2dbcException.class)
        .hasMessageContaining("read-only");
    eventually(() -> assertThat(routed.routes()).isEqualTo("reader proved: 1"));
  }

  @Test
  @DisplayName("PG-14 a write goes to the writer, and is committed; one that fails is not")
  void write() {
    routed.servers.primary().execute("CREATE TABLE IF NOT EXISTS written (n int)");
    routed.servers.primary().execute("TRUNCATE written");
    routed.db.write(rows("INSERT INTO written VALUES (1) RETURNING n")).blockLast(Routed.BOUND);
    assertThatThrownBy(
            () ->
                routed
                    .db
                    .write(
                        c ->
                            Flux.concat(
                                rows("INSERT INTO written VALUES (2) RETURNING n").apply(c),
                                Mono.error(new IllegalStateException("no"))))
                    .blockLast(Routed.BOUND))
        .hasMessage("no");
    assertThat(routed.servers.primary().value("SELECT sum(n) FROM written")).isEqualTo("1");
    eventually(() -> assertThat(routed.routes()).isEqualTo("writer read_write_requested: 2"));
  }

  @Test
  @DisplayName("PG-11 a reader that refuses connections is told as a dial that failed")
  void dialFailed() {
    try (Routed down = Routed.on(routed.servers)) {
      down.reader.refuse();
      assertThat(down.read(WHERE)).containsExactly("false");
      eventually(() -> assertThat(down.routes()).isEqualTo("writer reader_dial_failed: 1"));
    }
  }

  @Test
  @DisplayName(
      "PG-11 PG-5 a pool with as many waiting as may is saturated, never the caller's error")
  void saturated() {
    try (Routed small =
        Routed.on(routed.servers, s -> s.readerMaxSize(1).readerMaxPending(0)).warm()) {
      Mono<String> long1 = small.db.readMono(rows("SELECT pg_sleep(3)::text")).cache();
      long1.subscribe();
      eventually(() -> assertThat(small.gauge("timebound.pg.pool.acquired")).isOne());
      assertThat(small.read(WHERE)).containsExactly("false");
      eventually(() -> assertThat(small.routes()).isEqualTo("writer reader_saturated: 1"));
      long1.block(Routed.BOUND);
    }
  }

  @Test
  @DisplayName("PG-11 PG-5 those that wait for a busy pool in vain time out alone")
  void acquireTimeout() {
    try (Routed small =
        Routed.on(routed.servers, s -> s.readerMaxSize(1).acquireTimeout(Duration.ofMillis(150)))
            .warm()) {
      Mono<String> long1 = small.db.readMono(rows("SELECT pg_sleep(3)::text")).cache();
      long1.subscribe();
      eventually(() -> assertThat(small.gauge("timebound.pg.pool.acquired")).isOne());
      assertThat(small.read(WHERE)).containsExactly("false");
      eventually(() -> assertThat(small.routes()).isEqualTo("writer reader_acquire_timeout: 1"));
      assertThat(long1.block(Routed.BOUND)).isNotNull();
    }
  }

  @Test
  @DisplayName("PG-11 a proof that waits for a lock on the heartbeat's table times out")
  void heartbeatLocked() throws Exception {
    routed.db.createHeartbeat().block(Routed.BOUND);
    routed
        .servers
        .primary()
        .execute("INSERT INTO timebound_heartbeat VALUES (1, now(), '0/0') ON CONFLICT DO NOTHING");
    try (java.sql.Connection locks = routed.servers.primary().connect()) {
      locks.setAutoCommit(false);
      try (java.sql.Statement statement = locks.createStatement()) {
        statement.execute("LOCK TABLE timebound_heartbeat IN ACCESS EXCLUSIVE MODE");
        // a commit takes the lock's record along to the standby
        routed.servers.primary().execute("SELECT pg_logical_emit_message(true, '', '')");
        routed.servers.awaitReplay();
        eventually(
            () ->
                assertThat(
                        routed
                            .servers
                            .standby()
                            .value(
                                "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock'"
                                    + " AND relation = 'timebound_heartbeat'::regclass"))
                    .isEqualTo("1"));
        assertThat(
                routed.read(
                    ReadOptions.defaults().fence(Fence.maxStaleness(Duration.ofDays(1))), WHERE))
            .containsExactly("false");
      }
      locks.rollback();
    }
    eventually(() -> assertThat(routed.routes()).isEqualTo("writer reader_proof_timeout: 1"));
    assertThat(routed.closed(CloseReason.OPEN_TRANSACTION)).isOne();
  }

  @Test
  @DisplayName("PG-10 a statement whose cached plan a change of the table broke is executed again")
  void changedTable() {
    routed.servers.primary().execute("DROP TABLE IF EXISTS changing");
    routed.servers.primary().execute("CREATE TABLE changing AS SELECT 1 AS n");
    routed.servers.awaitReplay();
    for (int i = 0; i < 3; i++) {
      assertThat(routed.read("SELECT * FROM changing WHERE n >= $1", 0)).containsExactly("1");
      eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
    }
    routed.servers.primary().execute("ALTER TABLE changing ALTER n TYPE bigint, ADD m text");
    routed.servers.awaitReplay();
    for (int i = 0; i < 3; i++) {
      assertThat(routed.read("SELECT * FROM changing WHERE n >= $1", 0)).containsExactly("1");
    }
  }

  @Test
  @DisplayName("PG-11 what a read's own code composes is called once, wherever it runs")
  void calledOnce() {
    AtomicInteger calls = new AtomicInteger();
    routed.servers.standby().freeze();
    List<String> rows =
        routed
            .db
            .read(
                c -> {
                  calls.incrementAndGet();
                  return Flux.concat(rows(WHERE).apply(c), rows("SELECT 'second'").apply(c));
                })
            .collectList()
            .block(Routed.BOUND);
    assertThat(rows).containsExactly("false", "second");
    assertThat(calls).hasValue(1);
  }

  @Test
  @DisplayName("PG-13 a deadline past what statement_timeout can hold")
  void farDeadline() {
    assertThat(
            routed
                .db
                .readMono(rows(WHERE))
                .transform(Deadlines.within(Duration.ofDays(100)))
                .block(Routed.BOUND))
        .isEqualTo("true");
    eventually(() -> assertThat(routed.routes()).isEqualTo("reader proved: 1"));
  }

  @Test
  @DisplayName("once it is closed a read, a write, a fence and a connection say so")
  void closed() {
    try (Routed other = Routed.on(routed.servers).warm()) {
      var factory = other.db.connectionFactory();
      other.db.close();
      other.db.close();
      for (Publisher<?> late :
          List.<Publisher<?>>of(
              other.db.read(rows(WHERE)),
              other.db.readMono(rows(WHERE)),
              other.db.write(rows(WHERE)),
              other.db.fence(),
              other.db.createHeartbeat(),
              factory.create())) {
        assertThatThrownBy(() -> Flux.from(late).blockLast(Routed.BOUND))
            .isInstanceOf(IllegalStateException.class)
            .hasMessage("RoutedDatabase: closed (expected: open)");
      }
    }
  }

  @Test
  @DisplayName("a read is in a transaction already: beginning one is told as what it is")
  void begins() {
    assertThatThrownBy(
            () -> routed.db.read(c -> Flux.from(c.beginTransaction())).blockLast(Routed.BOUND))
        .hasMessage("beginTransaction: a read is in its transaction already");
  }

  @Test
  @DisplayName("a statement behind a first one that was given up fails at once, and does not wait")
  void behindOneGivenUp() {
    routed.reader.freezeAll();
    Flux<String> read =
        routed.db.read(
            c ->
                rows("SELECT 1")
                    .andThen(Flux::from)
                    .apply(c)
                    .timeout(Duration.ofMillis(50))
                    .onErrorResume(late -> rows("SELECT 2").apply(c)));
    assertThatThrownBy(() -> read.blockLast(Routed.BOUND))
        .hasMessageContaining("first statement was given up");
  }
}
