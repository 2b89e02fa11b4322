package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.R2dbcException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@DisplayName("PG-12 a replica that ends a statement for its own recovery's sake")
class RecoveryConflictTest {
  /** A standby that never waits for its readers, so that a conflict is a matter of a vacuum. */
  @RegisterExtension
  static final PostgresReplicaSetExtension POSTGRES =
      PostgresReplicaSetExtension.of(
          PostgresReplicaSet.builder()
              .setting("max_standby_streaming_delay", "0")
              .setting("hot_standby_feedback", "off")
              .setting("autovacuum", "off"));

  private static final int ROWS = 20_000;

  private final PostgresReplicaSet servers;
  private final Routed routed;

  RecoveryConflictTest(PostgresReplicaSet servers) {
    this.servers = servers;
    this.routed = Routed.on(servers);
  }

  @BeforeEach
  void table() {
    servers.primary().execute("CREATE TABLE IF NOT EXISTS contested (n int, filler text)");
    servers.primary().execute("TRUNCATE contested");
    servers
        .primary()
        .execute(
            "INSERT INTO contested SELECT n, repeat('x', 200) FROM generate_series(1, "
                + ROWS
                + ") n");
    servers.awaitReplay();
    routed.warm();
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  /** Takes away what snapshots on the standby still see. */
  private void conflict() {
    servers.primary().execute("UPDATE contested SET filler = 'y'");
    servers.primary().execute("VACUUM contested");
  }

  @ParameterizedTest(name = "of a statement {0}")
  @ValueSource(strings = {"without parameters", "with one", "fetched in portions"})
  @DisplayName("PG-12 before any row is repeated on the writer")
  void beforeAnyRow(String which) {
    String count =
        "SELECT count(*) FROM contested, LATERAL (SELECT CASE WHEN pg_is_in_recovery()"
            + " THEN pg_sleep(0.1 + n * 0) END) AS slow";
    Function<Connection, Publisher<String>> rows =
        switch (which) {
          case "with one" -> rows(count + " WHERE n >= $1", 0);
          case "fetched in portions" ->
              c ->
                  Flux.from(c.createStatement(count).fetchSize(10).execute())
                      .concatMap(r -> r.map((row, metadata) -> String.valueOf(row.get(0))));
          default -> rows(count);
        };
    Mono<String> read = routed.db.readMono(rows).cache();
    read.subscribe();
    eventually(
        () ->
            assertThat(routed.sessions(servers.standby()))
                .anyMatch(session -> session.waitEvent().equals("PgSleep")));
    conflict();
    assertThat(read.block(Routed.BOUND)).isEqualTo("" + ROWS);
    eventually(() -> assertThat(routed.routes()).isEqualTo("writer reader_conflict: 1"));
  }

  @ParameterizedTest(name = "while the server {0}")
  @ValueSource(strings = {"waits for its client", "works on the next row"})
  @DisplayName("PG-12 after a row is the caller's error, no row twice")
  void afterARow(String when) {
    boolean works = when.startsWith("works");
    Function<Connection, Publisher<String>> rows =
        c ->
            Flux.from(
                    c.createStatement(
                            "SELECT n, CASE WHEN n > 1 AND "
                                + works
                                + " AND pg_is_in_recovery() THEN pg_sleep(60 + n * 0) END"
                                + " FROM contested")
                        .fetchSize(1)
                        .execute())
                .concatMap(r -> r.map((row, metadata) -> String.valueOf(row.get(0))));
    List<String> seen = new CopyOnWriteArrayList<>();
    List<Throwable> errors = new CopyOnWriteArrayList<>();
    BaseSubscriber<String> slow =
        new BaseSubscriber<>() {
          @Override
          protected void hookOnSubscribe(Subscription subscription) {
            request(1);
          }

          @Override
          protected void hookOnNext(String value) {
            seen.add(value);
          }

          @Override
          protected void hookOnError(Throwable error) {
            errors.add(error);
          }
        };
    routed.db.read(rows).subscribe(slow);
    eventually(() -> assertThat(seen).containsExactly("1"));
    if (works) {
      slow.request(Long.MAX_VALUE);
      eventually(
          () ->
              assertThat(routed.sessions(servers.standby()))
                  .anyMatch(session -> session.waitEvent().equals("PgSleep")));
    }
    conflict();
    slow.request(Long.MAX_VALUE);
    eventually(() -> assertThat(errors).hasSize(1));
    assertThat(errors.get(0)).isInstanceOf(R2dbcException.class);
    assertThat(seen).doesNotHaveDuplicates();
    eventually(() -> assertThat(routed.routes()).isEqualTo("reader proved: 1"));
  }
}
