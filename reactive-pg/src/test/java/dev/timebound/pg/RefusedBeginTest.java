package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.r2dbc.spi.ConnectionFactories;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-10 a BEGIN that the server refuses, while it runs the statement behind it")
class RefusedBeginTest {
  private final PostgresReplicaSet servers;
  private final SimpleMeterRegistry meters = new SimpleMeterRegistry();

  RefusedBeginTest(PostgresReplicaSet servers) {
    this.servers = servers;
  }

  @ParameterizedTest(name = "with a parameter: {0}")
  @ValueSource(booleans = {false, true})
  @DisplayName("PG-10 PG-11 of what that gives no row is seen: the writer is asked")
  void refused(boolean parameter) {
    List<String> seen = new CopyOnWriteArrayList<>();
    try (StartupGate gate = StartupGate.before(servers.standby().port());
        RoutedDatabase db =
            RoutedDatabase.builder()
                .writer(ConnectionFactories.get(servers.primary().r2dbcUrl()))
                .reader(
                    "garbled",
                    c ->
                        c.host("127.0.0.1")
                            .port(gate.port())
                            .username(servers.primary().user())
                            .database(servers.primary().database()))
                .acquireTimeout(Routed.BOUND)
                .meters(meters)
                .build()
                .start()) {
      eventually(
          () -> assertThat(meters.get("timebound.pg.pool.idle").gauge().value()).isPositive());
      // a syntax error to the server: no transaction is open then
      gate.garble("BEGIN", "BEGGS");
      String where = "SELECT pg_is_in_recovery() || ' ' || n FROM generate_series(1, 3) n";
      assertThat(
              db.read(
                      c ->
                          Flux.from(
                                  parameter
                                      ? c.createStatement(where + " WHERE n > $1")
                                          .bind(0, 0)
                                          .execute()
                                      : c.createStatement(where).execute())
                              .concatMap(
                                  result ->
                                      result.map(
                                          (row, metadata) -> {
                                            seen.add(String.valueOf(row.get(0)));
                                            return String.valueOf(row.get(0));
                                          })))
                  .collectList()
                  .block(Routed.BOUND))
          .containsExactly("false 1", "false 2", "false 3");
      assertThat(seen).containsExactly("false 1", "false 2", "false 3");
      eventually(
          () ->
              assertThat(
                      meters
                          .get("timebound.pg.routes")
                          .tag("target", "writer")
                          .tag("reason", "reader_validation_error")
                          .counter()
                          .count())
                  .isOne());
      gate.garble("BEGIN", "BEGIN");
      assertThat(db.read(rows("SELECT pg_is_in_recovery()")).blockLast(Routed.BOUND))
          .isEqualTo("true");
    }
  }
}
