package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-20 a read sees at least what its fence asks for")
class FenceTest {
  private static final String COUNT = "SELECT count(*) FROM fenced";

  private final PostgresReplicaSet servers;
  private final Routed routed;

  FenceTest(PostgresReplicaSet servers) {
    this.servers = servers;
    this.routed = Routed.on(servers, settings -> settings.heartbeat(ofMillis(100)));
  }

  @BeforeEach
  void table() {
    routed.db.createHeartbeat().block(Routed.BOUND);
    servers.primary().execute("CREATE TABLE IF NOT EXISTS fenced (n int)");
    servers.primary().execute("TRUNCATE fenced");
    servers.awaitReplay();
    routed.warm();
    eventually(
        () ->
            assertThat(servers.standby().value("SELECT count(*) FROM timebound_heartbeat"))
                .isEqualTo("1"));
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  private void insert() {
    servers.primary().execute("INSERT INTO fenced VALUES (1)");
  }

  private Fence now() {
    return requireNonNull(routed.db.fence().block(Routed.BOUND));
  }

  private static ReadOptions with(Fence fence) {
    return ReadOptions.defaults().fence(fence);
  }

  @Nested
  class Position {
    @Test
    @DisplayName(
        "PG-20 a replica that has replayed the position serves the read, in one round trip")
    void reached() {
      insert();
      Fence fence = now();
      servers.awaitReplay();
      assertThat(routed.read(with(fence), COUNT)).containsExactly("1");
      eventually(() -> assertThat(routed.gauge("timebound.pg.pool.idle")).isOne());
      routed.reader.delay(ofMillis(20));
      long before = routed.reader.roundTrips();
      assertThat(routed.read(with(fence), COUNT)).containsExactly("1");
      assertThat(routed.reader.roundTrips() - before).isLessThanOrEqualTo(2);
      eventually(() -> assertThat(routed.routes()).isEqualTo("reader proved: 2"));
    }

    @Test
    @DisplayName("PG-20 one that has not is stale: the writer serves, and the connection is kept")
    void behind() {
      servers.standby().pauseReplay();
      insert();
      assertThat(routed.read(COUNT)).as("without a fence").containsExactly("0");
      eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
      assertThat(routed.read(with(now()), COUNT)).containsExactly("1");
      eventually(
          () -> assertThat(routed.routes()).isEqualTo("reader proved: 1, writer reader_stale: 1"));
      eventually(() -> assertThat(routed.gauge("timebound.pg.pool.idle")).isOne());
      assertThat(routed.reader.accepted()).as("dials").isOne();
    }

    @Test
    @DisplayName(
        "PG-20 the verdict is of the read's own snapshot: a row that shows is always fresh")
    void ownSnapshot() {
      // Replay goes on while reads are proved: a position looked at inside the snapshot would pass
      // for rows that the snapshot does not show.
      for (int i = 1; i <= 60; i++) {
        insert();
        Fence fence = now();
        assertThat(routed.read(with(fence), COUNT)).as("read %s", i).containsExactly("" + i);
      }
    }

    /**
     * The snapshot is taken before the lock on the heartbeat's table is waited for: held there, the
     * replay passes the position behind the snapshot's back.
     */
    @Test
    @DisplayName("PG-20 a position reached only after the snapshot was taken proves nothing")
    void reachedBehindTheSnapshot() throws Exception {
      try (Routed patient =
              Routed.on(servers, settings -> settings.proofTimeout(ofSeconds(20))).warm();
          java.sql.Connection locks = servers.primary().connect()) {
        locks.setAutoCommit(false);
        try (java.sql.Statement statement = locks.createStatement()) {
          statement.execute("LOCK TABLE timebound_heartbeat IN ACCESS EXCLUSIVE MODE");
          insert();
          servers.awaitReplay();
          servers.standby().pauseReplay();
          insert();
          Fence fence = now().and(Fence.maxStaleness(Duration.ofDays(1)));
          Mono<String> read = patient.db.readMono(with(fence), rows(COUNT)).cache();
          read.subscribe();
          eventually(
              () ->
                  assertThat(patient.sessions(servers.standby()))
                      .anyMatch(session -> session.waitEvent().equals("relation")));
          servers.standby().resumeReplay();
          servers.awaitReplay();
          locks.rollback();
          assertThat(read.block(Routed.BOUND)).isEqualTo("2");
          eventually(() -> assertThat(patient.routes()).isEqualTo("writer reader_stale: 1"));
        }
      }
    }

    @Test
    @DisplayName("PG-20 it is waited for as long as the read allows, and then served by the reader")
    void waits() {
      servers.standby().pauseReplay();
      insert();
      Fence fence = now();
      Mono.delay(ofMillis(200), Schedulers.boundedElastic())
          .doOnNext(t -> servers.standby().resumeReplay())
          .subscribe();
      assertThat(routed.read(with(fence).waitForFence(ofSeconds(20)), COUNT)).containsExactly("1");
      eventually(() -> assertThat(routed.routes()).isEqualTo("reader proved: 1"));
    }

    @Test
    @DisplayName("PG-20 and no longer: then the writer serves")
    void waitsNoLonger() {
      servers.standby().pauseReplay();
      insert();
      assertThat(routed.read(with(now()).waitForFence(ofMillis(200)), COUNT)).containsExactly("1");
      eventually(() -> assertThat(routed.routes()).isEqualTo("writer reader_stale: 1"));
    }

    @ParameterizedTest(name = "with a parameter: {0}")
    @ValueSource(booleans = {false, true})
    @DisplayName("PG-11 a reader that breaks while its replay is waited for: the writer serves")
    void breaksMeanwhile(boolean withParameter) {
      servers.standby().pauseReplay();
      insert();
      ReadOptions waiting = with(now()).waitForFence(ofSeconds(20));
      Mono<String> read =
          routed
              .db
              .readMono(waiting, withParameter ? rows(COUNT + " WHERE n = $1", 1) : rows(COUNT))
              .cache();
      read.subscribe(count -> {}, e -> {});
      eventually(
          () ->
              assertThat(routed.sessions(servers.standby()))
                  .anyMatch(session -> session.query().startsWith("SELECT coalesce(")));
      routed.reader.cut();
      assertThat(read.block(Routed.BOUND)).isEqualTo("1");
      eventually(() -> assertThat(routed.routes()).isEqualTo("writer reader_validation_error: 1"));
    }

    @Test
    @DisplayName("PG-20 where the replica hides its position the heartbeat row tells it")
    void hidden() {
      servers.primary().execute("REVOKE EXECUTE ON FUNCTION pg_last_wal_replay_lsn() FROM public");
      servers.primary().execute("DROP ROLE IF EXISTS blind");
      servers.primary().execute("CREATE ROLE blind LOGIN");
      servers.primary().execute("GRANT SELECT ON fenced, timebound_heartbeat TO blind");
      servers.awaitReplay();
      SimpleMeterRegistry meters = new SimpleMeterRegistry();
      try (RoutedDatabase blind =
          RoutedDatabase.builder()
              .writer(routed.writerPool)
              .reader(
                  "blind",
                  c ->
                      c.host("127.0.0.1")
                          .port(servers.standby().port())
                          .username("blind")
                          .database(servers.primary().database()))
              .meters(meters)
              .build()
              .start()) {
        eventually(
            () -> assertThat(meters.get("timebound.pg.pool.idle").gauge().value()).isPositive());
        insert();
        ReadOptions fenced = with(now()).waitForFence(ofSeconds(20));
        for (int i = 0; i < 3; i++) {
          assertThat(
                  blind
                      .read(fenced, rows("SELECT current_user || count(*) FROM fenced"))
                      .blockLast(Routed.BOUND))
              .isEqualTo("blind1");
        }
        servers.standby().pauseReplay();
        insert();
        assertThat(blind.read(with(now()), rows(COUNT)).blockLast(Routed.BOUND)).isEqualTo("2");
      } finally {
        servers.primary().execute("GRANT EXECUTE ON FUNCTION pg_last_wal_replay_lsn() TO public");
        servers.primary().execute("DROP OWNED BY blind");
        servers.primary().execute("DROP ROLE blind");
      }
    }
  }

  @Nested
  class Staleness {
    @Test
    @DisplayName("PG-20 a replica within it serves")
    void fresh() {
      assertThat(routed.read(with(Fence.maxStaleness(ofSeconds(10))), COUNT)).containsExactly("0");
      eventually(() -> assertThat(routed.routes()).isEqualTo("reader proved: 1"));
    }

    @Test
    @DisplayName("PG-20 one whose replay stands still does not, once it is too old")
    void stale() {
      servers.standby().pauseReplay();
      insert();
      eventually(
          () ->
              assertThat(routed.read(with(Fence.maxStaleness(ofMillis(500))), COUNT))
                  .containsExactly("1"));
      eventually(() -> assertThat(routed.routes()).contains("writer reader_stale: 1"));
    }

    @Test
    @DisplayName("PG-20 a row from the future shows a clock that is behind: it proves nothing")
    void clockBehind() {
      try (Routed still = Routed.on(servers).warm()) {
        routed.db.close(); // moves it no more
        servers
            .primary()
            .execute("UPDATE timebound_heartbeat SET moved_at = now() + interval '1 hour'");
        servers.awaitReplay();
        assertThat(still.read(with(Fence.maxStaleness(ofSeconds(10))), COUNT)).containsExactly("0");
        eventually(() -> assertThat(still.routes()).isEqualTo("writer reader_stale: 1"));
      } finally {
        servers.primary().execute("TRUNCATE timebound_heartbeat");
      }
    }

    @Test
    @DisplayName("PG-20 without a heartbeat's table a reader proves nothing, and the writer serves")
    void noTable() {
      servers.primary().execute("ALTER TABLE timebound_heartbeat RENAME TO away");
      servers.awaitReplay();
      try (Logged logged = Logged.of(RoutedDatabase.class)) {
        for (int i = 0; i < 3; i++) {
          assertThat(routed.read(with(Fence.maxStaleness(ofSeconds(10))), COUNT))
              .containsExactly("0");
        }
        eventually(
            () -> assertThat(routed.routes()).isEqualTo("writer reader_validation_error: 3"));
        assertThat(logged.warnings())
            .as("told once, and what to do")
            .singleElement()
            .satisfies(
                said -> assertThat(said.getFormattedMessage()).contains("createHeartbeat()"));
      } finally {
        servers.primary().execute("ALTER TABLE away RENAME TO timebound_heartbeat");
      }
    }
  }

  @Nested
  class OwnWrites {
    @Test
    @DisplayName("PG-21 what a pipeline wrote its later reads see, with no code in between")
    void pipeline() {
      servers.standby().pauseReplay();
      String seen =
          routed
              .db
              .write(rows("INSERT INTO fenced VALUES (1) RETURNING n"))
              .then(routed.db.readMono(rows(COUNT)))
              .transform(m -> Mono.from(ReadYourWrites.<String>scope().apply(m)))
              .block(Routed.BOUND);
      assertThat(seen).isEqualTo("1");
      assertThat(routed.read(COUNT)).as("another pipeline").containsExactly("0");
    }

    @Test
    @DisplayName("PG-21 the next request of the same client sees it too, by a token")
    void token() {
      servers.standby().pauseReplay();
      String token =
          requireNonNull(
              routed
                  .db
                  .write(rows("INSERT INTO fenced VALUES (1) RETURNING n"))
                  .then(
                      Mono.deferContextual(
                          context -> Mono.just(ReadYourWrites.token(context).orElseThrow())))
                  .transform(m -> Mono.from(ReadYourWrites.<String>scope().apply(m)))
                  .block(Routed.BOUND));
      assertThat(token).matches("1-[0-9A-F]{1,16}");
      Flux<String> next = routed.db.read(rows(COUNT));
      assertThat(Flux.from(ReadYourWrites.<String>scope(token).apply(next)).blockLast(Routed.BOUND))
          .isEqualTo("1");
      assertThat(
              Flux.from(ReadYourWrites.<String>scope("1-zz").apply(next)).blockLast(Routed.BOUND))
          .as("a malformed one is no fence")
          .isEqualTo("0");
      assertThatThrownBy(
              () ->
                  Flux.from(
                          ReadYourWrites.<String>scope("1-zz", ReadYourWrites.Malformed.REFUSE)
                              .apply(next))
                      .blockLast(Routed.BOUND))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("read-your-writes token: '1-zz' (expected: like 1-16B374D848)");
    }
  }
}
