package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static java.time.Duration.ofMillis;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadlines;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import dev.timebound.test.PostgresSession;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/** That nothing is left each time is seen by {@link Routed#close()}. */
@Timeout(60)
@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-15 PG-19 SQL that does to its session what a read or write is not for")
class SessionTextTest {
  private final Routed routed;

  SessionTextTest(PostgresReplicaSet servers) {
    this.routed = Routed.on(servers);
  }

  @BeforeEach
  void warm() {
    routed.warm();
    routed.servers.primary().execute("CREATE TABLE IF NOT EXISTS copied (n int)");
    routed.servers.awaitReplay();
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  @Test
  @DisplayName("PG-15 PG-17 a COMMIT in a read's text: what it set does not meet the next read")
  void endsItsTransaction() {
    assertThat(
            routed
                .db
                .read(
                    c ->
                        Flux.concat(
                            rows("SELECT pg_backend_pid()").apply(c),
                            rows("SET statement_timeout = 7777").apply(c),
                            rows("COMMIT").apply(c)))
                .collectList()
                .block(Routed.BOUND))
        .hasSize(1);
    eventually(() -> assertThat(routed.closed(CloseReason.OPEN_TRANSACTION)).isOne());
    routed.warm();
    for (int i = 0; i < 5; i++) {
      assertThat(routed.read("SHOW statement_timeout")).doesNotContain("7777ms");
    }
  }

  @Test
  @DisplayName("PG-15 what a read sets and does not commit ends with it")
  void setsOnly() {
    routed
        .db
        .read(c -> Flux.concat(rows("SET work_mem = '77MB'").apply(c), rows("SELECT 1").apply(c)))
        .blockLast(Routed.BOUND);
    assertThat(routed.read("SHOW work_mem")).doesNotContain("77MB");
    assertThat(routed.closed(CloseReason.OPEN_TRANSACTION)).isZero();
  }

  @ParameterizedTest(name = "{0}, on the writer: {1}")
  @CsvSource({
    "COPY copied FROM STDIN,true",
    "COPY copied TO STDOUT,true",
    "COPY copied TO STDOUT,false",
    "LISTEN a_channel,true"
  })
  @DisplayName("PG-13 PG-19 COPY and LISTEN end, by the deadline at the latest, and leave nothing")
  void driversOwn(String sql, boolean write) {
    PostgresServer server = write ? routed.servers.primary() : routed.servers.standby();
    Publisher<String> bounded =
        Deadlines.<String>within(ofMillis(800))
            .apply(write ? routed.db.write(rows(sql)) : routed.db.read(rows(sql)));
    Flux.from(bounded).onErrorComplete().blockLast(Routed.BOUND);
    eventually(
        () ->
            assertThat(routed.sessions(server))
                .noneMatch(PostgresSession::isRunning)
                .noneMatch(PostgresSession::isIdleInTransaction));
    assertThat(
            (write ? routed.db.write(rows("SELECT 'on'")) : routed.db.read(rows("SELECT 'on'")))
                .collectList()
                .block(Routed.BOUND))
        .isEqualTo(List.of("on"));
  }
}
