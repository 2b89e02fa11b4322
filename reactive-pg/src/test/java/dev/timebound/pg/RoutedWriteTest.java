package dev.timebound.pg;

import static dev.timebound.pg.Routed.rows;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.scheduler.Schedulers;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-14 a write is a transaction on the writer")
class RoutedWriteTest {
  private static final String INSERT =
      "INSERT INTO answered SELECT generate_series(1, $1) RETURNING n";

  private final PostgresReplicaSet servers;
  private final Routed routed;

  RoutedWriteTest(PostgresReplicaSet servers) {
    this.servers = servers;
    this.routed = Routed.on(servers);
  }

  @BeforeEach
  void table() {
    servers.primary().execute("CREATE TABLE IF NOT EXISTS answered (n int)");
    servers.primary().execute("TRUNCATE answered");
  }

  @AfterEach
  void close() {
    routed.close();
  }

  private String count() {
    return servers.primary().value("SELECT count(*) FROM answered");
  }

  @Test
  @DisplayName("PG-14 the answer of writeMono comes when it is committed")
  void committed() {
    assertThat(
            routed
                .db
                .writeMono(rows(INSERT, 1))
                .publishOn(Schedulers.boundedElastic())
                .map(answer -> answer + " of " + count())
                .block(Routed.BOUND))
        .isEqualTo("1 of 1");
  }

  @Test
  @DisplayName("PG-14 a write with more than one answer is refused by writeMono, and rolled back")
  void several() {
    assertThatThrownBy(() -> routed.db.writeMono(rows(INSERT, 2)).block(Routed.BOUND))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThat(count()).isEqualTo("0");
  }

  @Test
  @DisplayName("PG-14 rows of a streamed write come before its commit: who leaves rolls it back")
  void left() {
    assertThat(routed.db.write(rows(INSERT, 2)).next().block(Routed.BOUND)).isEqualTo("1");
    assertThat(count()).isEqualTo("0");
  }
}
