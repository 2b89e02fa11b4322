package dev.timebound.test;

import static dev.timebound.test.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.net.ConnectException;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
class PostgresReplicaSetTest {

  @Nested
  class Replication {
    @Test
    @DisplayName(
        "what the primary wrote is read on the standby, which streams it and takes no write")
    void streams(PostgresReplicaSet postgres) {
      PostgresServer primary = postgres.primary();
      PostgresServer standby = postgres.standby();
      primary.execute("CREATE TABLE IF NOT EXISTS streamed (id int)");
      assertThat(primary.execute("INSERT INTO streamed SELECT generate_series(1, 100)"))
          .isEqualTo(100);
      standby.awaitReplay();
      assertThat(standby.value("SELECT count(*) FROM streamed")).isEqualTo("100");
      assertThat(primary.isStandby()).isFalse();
      assertThat(standby.isStandby()).isTrue();
      assertThat(
              primary.query(
                  "SELECT application_name, state FROM pg_stat_replication"
                      + " WHERE application_name = ?",
                  "standby-1"))
          .singleElement()
          .satisfies(row -> assertThat(row).containsEntry("state", "streaming"));
      assertThatThrownBy(() -> standby.execute("INSERT INTO streamed VALUES (0)"))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("read-only transaction");
    }

    @Test
    @DisplayName("a second standby is there on request, and is the same at the next request")
    void second(PostgresReplicaSet postgres) {
      PostgresServer second = postgres.standby(2);
      assertThat(second).isSameAs(postgres.standby(2)).isNotSameAs(postgres.standby());
      assertThat(second.name()).isEqualTo("standby-2");
      postgres.primary().execute("CREATE TABLE IF NOT EXISTS seconded AS SELECT 7 AS n");
      postgres.awaitReplay();
      for (PostgresServer standby : postgres.standbys()) {
        assertThat(standby.value("SELECT n FROM seconded")).isEqualTo("7");
      }
      assertThatThrownBy(() -> postgres.standby(0))
          .hasMessage("standby: 0 (expected: from 1 to 8)");
    }

    @Test
    @DisplayName(
        "with its replay paused a standby answers from the past, and catches up when resumed")
    void pausedReplay(PostgresReplicaSet postgres) {
      PostgresServer primary = postgres.primary();
      PostgresServer standby = postgres.standby();
      primary.execute("CREATE TABLE IF NOT EXISTS paused (id int)");
      standby.awaitReplay();
      standby.pauseReplay();
      primary.execute("INSERT INTO paused VALUES (1)");
      // one that streams on has it, so the paused one could have it too
      postgres.standby(2).awaitReplay();
      assertThat(standby.value("SELECT count(*) FROM paused")).isEqualTo("0");
      assertThat(standby.walPosition()).isNotEqualTo(primary.walPosition());
      assertThatThrownBy(standby::awaitReplay).hasMessageContaining("paused");
      standby.resumeReplay();
      standby.awaitReplay();
      assertThat(standby.value("SELECT count(*) FROM paused")).isEqualTo("1");
      assertThatThrownBy(primary::pauseReplay).hasMessageContaining("primary is no standby");
    }

    @Test
    @DisplayName(
        "a promoted standby takes writes of its own; heal makes it a standby again, without")
    void promoted(PostgresReplicaSet postgres) {
      PostgresServer primary = postgres.primary();
      PostgresServer standby = postgres.standby();
      primary.execute("CREATE TABLE IF NOT EXISTS promoted (id int)");
      standby.awaitReplay();
      standby.promote();
      assertThat(standby.isStandby()).isFalse();
      assertThat(standby.execute("INSERT INTO promoted VALUES (1)")).isEqualTo(1);
      int port = standby.port();
      postgres.heal();
      assertThat(standby.isStandby()).isTrue();
      assertThat(standby.port()).isEqualTo(port);
      assertThat(standby.value("SELECT count(*) FROM promoted")).isEqualTo("0");
      primary.execute("INSERT INTO promoted VALUES (2)");
      standby.awaitReplay();
      assertThat(standby.value("SELECT id FROM promoted")).isEqualTo("2");
    }
  }

  @Nested
  class Freezing {
    @Test
    @DisplayName(
        "a frozen server stops whole, keeps its sockets, and goes on where it was when thawed")
    void freeze(PostgresReplicaSet postgres) throws Exception {
      PostgresServer standby = postgres.standby();
      try (Connection open = standby.connect("frozen")) {
        CompletableFuture<String> asked;
        Socket dialled;
        standby.freeze();
        assertThat(standby.isFrozen()).isTrue();
        assertThat(states(standby)).hasSizeGreaterThan(3).containsOnly("T");
        asked = CompletableFuture.supplyAsync(() -> one(open, "SELECT 'answered'"));
        dialled = new Socket(standby.host(), standby.port());
        dialled.setSoTimeout(100);
        dialled.getOutputStream().write(sslRequest());
        assertThatThrownBy(() -> dialled.getInputStream().read())
            .isInstanceOf(SocketTimeoutException.class);
        assertThat(asked).isNotDone();
        assertThat(states(standby)).containsOnly("T");
        assertThatThrownBy(() -> standby.query("SELECT 1")).hasMessageContaining("is frozen");
        assertThat(standby.log()).isNotEmpty();

        standby.thaw();
        assertThat(asked.get(30, TimeUnit.SECONDS)).isEqualTo("answered");
        dialled.setSoTimeout(30_000);
        assertThat(dialled.getInputStream().read()).isEqualTo('S');
        dialled.close();
        assertThat(standby.value("SELECT 1")).isEqualTo("1");
        assertThat(states(standby)).doesNotContain("T");
      }
    }

    @Test
    @DisplayName("a freeze catches the sessions that are being made at that moment too")
    void freezeInADialStorm(PostgresReplicaSet postgres) throws Exception {
      PostgresServer primary = postgres.primary();
      for (int round = 0; round < 5; round++) {
        List<CompletableFuture<Void>> dials =
            IntStream.range(0, 20)
                .mapToObj(i -> CompletableFuture.runAsync(() -> connectAndClose(primary)))
                .toList();
        primary.freeze();
        // some have ended before they were stopped; no one has taken notice of that yet
        assertThat(states(primary)).contains("T").isSubsetOf("T", "Z");
        primary.thaw();
        for (CompletableFuture<Void> dial : dials) {
          dial.get(30, TimeUnit.SECONDS);
        }
      }
    }
  }

  @Nested
  class Ending {
    @Test
    @DisplayName("a killed server refuses, loses nothing it had committed, and is followed again")
    void killed(PostgresReplicaSet postgres) throws Exception {
      PostgresServer primary = postgres.primary();
      primary.execute("CREATE TABLE IF NOT EXISTS killed (id int)");
      primary.execute("INSERT INTO killed VALUES (1)");
      try (Connection open = primary.connect("victim")) {
        primary.kill();
        assertThat(primary.isRunning()).isFalse();
        assertThat(refuses(primary)).isTrue();
        assertThatThrownBy(() -> one(open, "SELECT 1")).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> primary.query("SELECT 1")).hasMessageContaining("not running");
      }
      primary.restart();
      assertThat(primary.value("SELECT count(*) FROM killed")).isEqualTo("1");
      primary.execute("INSERT INTO killed VALUES (2)");
      postgres.standby().awaitReplay();
      assertThat(postgres.standby().value("SELECT count(*) FROM killed")).isEqualTo("2");
    }

    @Test
    @DisplayName("a frozen server can be killed, and heal brings it back")
    void killedFrozen(PostgresReplicaSet postgres) {
      PostgresServer standby = postgres.standby();
      standby.freeze();
      standby.kill();
      assertThat(standby.isFrozen()).isFalse();
      assertThat(refuses(standby)).isTrue();
      postgres.heal();
      assertThat(standby.isStandby()).isTrue();
    }

    @Test
    @DisplayName("a server that is stopped in order tells its sessions so; restart stops it first")
    void stopped(PostgresReplicaSet postgres) throws Exception {
      PostgresServer standby = postgres.standby();
      try (Connection open = standby.connect("told")) {
        standby.restart();
        assertThatThrownBy(() -> open.createStatement().execute("SELECT 1"))
            .isInstanceOfSatisfying(
                SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("57P01"));
      }
      assertThat(standby.value("SELECT 1")).isEqualTo("1");
      standby.stop();
      assertThat(refuses(standby)).isTrue();
    }
  }

  @Nested
  class Looking {
    @Test
    @DisplayName("sessions are listed by application name with what they do; the kit's own are not")
    void sessions(PostgresReplicaSet postgres) throws Exception {
      PostgresServer primary = postgres.primary();
      try (Connection idle = primary.connect("looked-at");
          Connection inTransaction = primary.connect("looked-at");
          Connection running = primary.connect("looked-at");
          Connection other = primary.connect("another")) {
        inTransaction.setAutoCommit(false);
        assertThat(one(inTransaction, "SELECT 'mine'")).isEqualTo("mine");
        CompletableFuture<String> sleep =
            CompletableFuture.supplyAsync(() -> one(running, "SELECT pg_sleep(60)::text"));
        eventually(
            "it sleeps",
            () ->
                primary.sessions("looked-at").stream()
                    .anyMatch(session -> session.waitEvent().equals("PgSleep")));
        List<PostgresSession> sessions = primary.sessions("looked-at");
        assertThat(sessions).hasSize(3);
        assertThat(sessions)
            .filteredOn(PostgresSession::isIdleInTransaction)
            .singleElement()
            .satisfies(session -> assertThat(session.query()).isEqualTo("SELECT 'mine'"));
        assertThat(sessions)
            .filteredOn(PostgresSession::isRunning)
            .singleElement()
            .satisfies(session -> assertThat(session.query()).contains("pg_sleep"));
        assertThat(primary.sessions())
            .extracting(PostgresSession::applicationName)
            .contains("looked-at", "another")
            .doesNotContain(PostgresQueries.APPLICATION);
        assertThat(idle.isValid(10) && other.isValid(10)).isTrue();
        int pid =
            sessions.stream().filter(PostgresSession::isRunning).findFirst().orElseThrow().pid();
        assertThat(primary.value("SELECT pg_cancel_backend(?)", pid)).isEqualTo("t");
        assertThatThrownBy(() -> sleep.get(30, TimeUnit.SECONDS))
            .hasMessageContaining("canceling statement");
      }
    }

    @Test
    @DisplayName("values come as text, NULL as empty; a statement that is refused is named")
    void values(PostgresReplicaSet postgres) {
      PostgresServer primary = postgres.primary();
      assertThat(primary.value("SELECT ? || 'b'", "a")).isEqualTo("ab");
      assertThat(primary.value("SELECT 1 = 1")).isEqualTo("t");
      assertThat(primary.value("SELECT NULL::text")).isEmpty();
      assertThatThrownBy(() -> primary.value("SELECT 1 AS a, 2 AS b"))
          .hasMessageContaining("one value");
      assertThatThrownBy(() -> primary.query("SELECT 1 AS a, 2 AS a"))
          .hasMessageContaining("two columns a");
      assertThatThrownBy(() -> primary.query("SELECT nonsense"))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("SELECT nonsense failed")
          .hasCauseInstanceOf(SQLException.class);
    }

    @Test
    @DisplayName("the server's log tells of a client that left in the middle of its TLS handshake")
    void log(PostgresReplicaSet postgres) throws Exception {
      PostgresServer standby = postgres.standby();
      int seen = standby.log().size();
      try (Socket dial = new Socket(standby.host(), standby.port())) {
        dial.getOutputStream().write(sslRequest());
        assertThat(dial.getInputStream().read()).isEqualTo('S');
      }
      eventually(
          "it is in the log",
          () ->
              standby.log().stream()
                  .skip(seen)
                  .anyMatch(line -> line.contains("could not accept SSL connection")));
    }

    @Test
    @DisplayName("clients connect over TLS with the certificate verified, and by its URLs without")
    void tls(PostgresReplicaSet postgres) throws Exception {
      PostgresServer standby = postgres.standby();
      String encrypted = "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
      try (Connection connection =
          DriverManager.getConnection(
              standby.jdbcUrl() + "&sslmode=verify-full&sslrootcert=" + postgres.certificate())) {
        assertThat(one(connection, encrypted)).isEqualTo("true");
      }
      try (Connection connection =
          DriverManager.getConnection(standby.jdbcUrl() + "&sslmode=disable")) {
        assertThat(one(connection, encrypted)).isEqualTo("false");
      }
      assertThat(standby.r2dbcUrl())
          .isEqualTo("r2dbc:postgresql://postgres@127.0.0.1:" + standby.port() + "/postgres");
    }
  }

  @Nested
  class Sharing {
    @Test
    @DisplayName("the shared set outlives a close")
    void close(PostgresReplicaSet shared) {
      assertThat(shared).isSameAs(PostgresReplicaSet.shared());
      shared.close();
      assertThat(shared.primary().value("SELECT 1")).isEqualTo("1");
    }

    @Test
    @DisplayName("root's servers run as another user, since Postgres refuses root")
    void user(PostgresReplicaSet postgres) throws IOException {
      assumeThat(System.getProperty("user.name")).isEqualTo("root");
      long uid =
          ((Number)
                  Files.getAttribute(
                      Path.of("/proc/" + pids(postgres.primary()).get(0)), "unix:uid"))
              .longValue();
      // by a user namespace it is root's to the outside, and nobody's to itself
      assertThat(postgres.primary().value("SELECT 1")).isEqualTo("1");
      assertThat(uid).isIn(0L, 65534L);
    }
  }

  // ---- helpers

  private static List<Long> pids(PostgresServer server) {
    return server.process().pids();
  }

  private static List<String> states(PostgresServer server) {
    return pids(server).stream().map(PostgresProcess::state).toList();
  }

  private static byte[] sslRequest() {
    return new byte[] {0, 0, 0, 8, 4, (byte) 210, 22, 47};
  }

  private static boolean refuses(PostgresServer server) {
    try (Socket socket = new Socket(server.host(), server.port())) {
      return !socket.isConnected();
    } catch (ConnectException e) {
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  private static void connectAndClose(PostgresServer server) {
    try (Connection connection =
        DriverManager.getConnection(server.jdbcUrl() + "&socketTimeout=60")) {
      one(connection, "SELECT 1");
    } catch (SQLException e) {
      throw new IllegalStateException(e.getMessage(), e);
    }
  }

  private static String one(Connection connection, String sql) {
    try (ResultSet result = connection.createStatement().executeQuery(sql)) {
      result.next();
      return result.getString(1);
    } catch (SQLException e) {
      throw new IllegalStateException(e.getMessage(), e);
    }
  }
}
