package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.health.MemberHealth;
import dev.timebound.health.ProbeAnswer;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.r2dbc.spi.ConnectionFactories;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-30 a reader that takes no more sessions serves on those it has")
class ReaderFullTest {
  private static final String WHERE = "SELECT pg_is_in_recovery() FROM pg_sleep(0.01)";

  private final PostgresReplicaSet servers;
  private final SimpleMeterRegistry meters = new SimpleMeterRegistry();

  ReaderFullTest(PostgresReplicaSet servers) {
    this.servers = servers;
  }

  @BeforeEach
  void role() {
    servers.primary().execute("DROP ROLE IF EXISTS crowded");
    servers.primary().execute("CREATE ROLE crowded LOGIN CONNECTION LIMIT 2");
    servers.awaitReplay();
  }

  @AfterEach
  void noRole() {
    servers.primary().execute("DROP ROLE crowded");
  }

  private RoutedDatabase database() {
    return RoutedDatabase.builder()
        .writer(ConnectionFactories.get(servers.primary().r2dbcUrl()))
        .reader(
            "crowded",
            c ->
                c.host("127.0.0.1")
                    .port(servers.standby().port())
                    .username("crowded")
                    .database(servers.primary().database()))
        .readerMaxSize(8)
        .acquireTimeout(Duration.ofSeconds(20))
        .meters(meters)
        .build()
        .start();
  }

  private List<String> burst(RoutedDatabase db) {
    return requireNonNull(
        Flux.range(0, 24)
            .flatMap(i -> db.readMono(rows(WHERE)), 24)
            .collectList()
            .block(Routed.BOUND));
  }

  @ParameterizedTest
  @ValueSource(strings = {"CONNECTION LIMIT 2", "NOLOGIN"})
  @DisplayName("PG-5 PG-30 a burst waits for them, dials no more, and the reader stays in service")
  void burst(String refusal) {
    try (RoutedDatabase db = database()) {
      eventually(() -> assertThat(meters.get("timebound.pg.pool.idle").gauge().value()).isOne());
      servers.primary().execute("ALTER ROLE crowded " + refusal);
      servers.awaitReplay();
      for (int i = 0; i < 4; i++) {
        assertThat(burst(db)).containsOnly("true");
      }
      assertThat(db.readers()).extracting(MemberHealth::quarantines).containsExactly(0);
      assertThat(meters.get("timebound.pg.dials").tag("outcome", "failed").counter().count())
          .as("dials in vain, of 96 reads")
          .isLessThan(30);
    }
  }

  private Connection other() throws SQLException {
    return DriverManager.getConnection(
        "jdbc:postgresql://127.0.0.1:"
            + servers.standby().port()
            + "/"
            + servers.primary().database(),
        "crowded",
        "");
  }

  @Test
  @DisplayName("PG-30 to a probe that is refused for want of room it has answered, if it serves")
  void probe() throws SQLException {
    try (ReaderPools pools = new ReaderPools();
        Connection first = other()) {
      ReaderPool pool =
          pools.open(
              "127.0.0.1",
              servers.standby().port(),
              values -> values.size(1, 8),
              builder -> builder.username("crowded"));
      Reader reader = new Reader("crowded", pool);
      pool.start();
      ReaderPools.idleIs(pool, 1);
      assertThat(reader.probe().block(Routed.BOUND)).isEqualTo(ProbeAnswer.ANSWERED);
      try (ReaderPools none = new ReaderPools()) {
        ReaderPool empty =
            none.open(
                "127.0.0.1",
                servers.standby().port(),
                values -> values.size(1, 8),
                builder -> builder.username("crowded"));
        assertThatThrownBy(() -> new Reader("crowded", empty).probe().block(Routed.BOUND))
            .hasMessageContaining("too many connections");
      }
      assertThat(first.isValid(10)).isTrue();
    }
  }
}
