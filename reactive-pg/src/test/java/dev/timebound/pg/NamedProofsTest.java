package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static java.time.Duration.ofHours;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-10 a proof that looks at the heartbeat is planned once a session")
class NamedProofsTest {
  private static final String NAMES =
      "SELECT string_agg(name, ' ' ORDER BY name) FROM pg_prepared_statements"
          + " WHERE name LIKE 'timebound%'";
  private static final String NONE = "null";

  private final PostgresReplicaSet servers;
  private final Routed routed;

  NamedProofsTest(PostgresReplicaSet servers) {
    this.servers = servers;
    this.routed = Routed.on(servers, settings -> settings.readerMaxSize(1).heartbeat(ofMillis(50)));
  }

  @BeforeEach
  void heartbeat() {
    routed.db.createHeartbeat().block(Routed.BOUND);
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

  /** On the one connection, once it is back. */
  private String read(ReadOptions options, String sql) {
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.idle")).isOne());
    return routed.read(options, sql).get(0);
  }

  private static ReadOptions within(Duration staleness) {
    return ReadOptions.defaults().fence(Fence.maxStaleness(staleness));
  }

  private void allProved(int reads) {
    eventually(() -> assertThat(routed.routes()).isEqualTo("reader proved: " + reads));
    assertThat(routed.reader.accepted()).as("dials").isOne();
  }

  @Test
  @DisplayName("PG-10 by a name for each staleness; one that looks at no heartbeat has none")
  void once() {
    assertThat(read(ReadOptions.defaults(), NAMES)).isEqualTo(NONE);
    for (int i = 1; i <= 3; i++) {
      assertThat(read(within(ofHours(1)), NAMES)).as("read %s", i).isEqualTo("timebound_proof_1");
    }
    assertThat(
            read(
                within(ofHours(1)),
                "SELECT generic_plans FROM pg_prepared_statements WHERE name LIKE 'timebound%'"))
        .as("runs of the one plan")
        .isEqualTo("4");
    assertThat(read(within(ofHours(2)), NAMES)).isEqualTo("timebound_proof_1 timebound_proof_2");
    allProved(6);
  }

  @Test
  @DisplayName("PG-10 sixteen names a session; a staleness beyond them is proved without one")
  void bounded() {
    for (int i = 1; i <= 20; i++) {
      read(within(ofHours(i)), "SELECT 1");
    }
    assertThat(
            read(
                within(ofHours(20)),
                "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'timebound%'"))
        .isEqualTo("16");
    allProved(21);
  }

  @Test
  @DisplayName("PG-10 one that found the replica stale keeps its name")
  void stale() {
    servers.standby().pauseReplay();
    ReadOptions fresh = within(ofMillis(100));
    eventually(
        () ->
            assertThat(
                    servers
                        .standby()
                        .value(
                            "SELECT clock_timestamp() - moved_at > interval '100 ms'"
                                + " FROM timebound_heartbeat"))
                .isEqualTo("t"));
    for (int i = 0; i < 3; i++) {
      assertThat(read(fresh, NAMES)).as("the writer's").isEqualTo(NONE);
    }
    servers.standby().resumeReplay();
    eventually(() -> assertThat(read(fresh, NAMES)).isEqualTo("timebound_proof_1"));
    assertThat(routed.reader.accepted()).as("dials").isOne();
  }

  @Test
  @DisplayName("PG-10 a session whose names were taken away serves on without any")
  void takenAway() {
    assertThat(read(within(ofHours(1)), NAMES)).isEqualTo("timebound_proof_1");
    read(ReadOptions.defaults(), "DEALLOCATE ALL; SELECT 1");
    assertThat(read(within(ofHours(1)), NAMES)).isEqualTo(NONE);
    assertThat(read(within(ofHours(1)), NAMES)).isEqualTo(NONE);
    allProved(4);
  }

  @Test
  @DisplayName("PG-10 so does one whose server knows somebody else's statement by the name")
  void takenBefore() {
    read(ReadOptions.defaults(), "PREPARE timebound_proof_1 AS SELECT 1; SELECT 1");
    assertThat(read(within(ofSeconds(10)), NAMES)).isEqualTo("timebound_proof_1");
    assertThat(read(within(ofSeconds(10)), NAMES)).isEqualTo("timebound_proof_1");
    allProved(3);
  }
}
