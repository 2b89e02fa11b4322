package dev.timebound.test;

import static dev.timebound.test.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
class PostgresThroughProxyTest {

  @Test
  @DisplayName("round trips are counted one by one, and each takes the delay of both ways")
  void roundTrips(PostgresReplicaSet postgres) throws Exception {
    try (FaultProxy proxy = postgres.standby().proxy();
        Connection connection = connect(proxy, "counted")) {
      assertThat(one(connection, "SELECT 'warm'")).isEqualTo("warm");
      long before = proxy.roundTrips();
      assertThat(one(connection, "SELECT 1")).isEqualTo("1");
      assertThat(one(connection, "SELECT 2")).isEqualTo("2");
      assertThat(proxy.roundTrips() - before).isEqualTo(2);
      proxy.delay(Duration.ofMillis(20));
      long start = System.nanoTime();
      assertThat(one(connection, "SELECT 3")).isEqualTo("3");
      assertThat(Duration.ofNanos(System.nanoTime() - start))
          .isGreaterThanOrEqualTo(Duration.ofMillis(40));
      assertThat(proxy.roundTrips() - before).isEqualTo(3);
    }
  }

  @Test
  @DisplayName(
      "a link that goes silent keeps its sockets on both sides, and nothing is lost after it")
  void silent(PostgresReplicaSet postgres) throws Exception {
    PostgresServer standby = postgres.standby();
    try (FaultProxy proxy = standby.proxy();
        Connection connection = connect(proxy, "silent")) {
      assertThat(one(connection, "SELECT 1")).isEqualTo("1");
      proxy.freezeAll();
      CompletableFuture<String> asked =
          CompletableFuture.supplyAsync(() -> one(connection, "SELECT 'late'"));
      // the server itself is well, and still has the session
      assertThat(standby.sessions("silent"))
          .singleElement()
          .satisfies(session -> assertThat(session.state()).isEqualTo("idle"));
      assertThat(proxy.openClientSockets()).isEqualTo(1);
      assertThat(proxy.openServerSockets()).isEqualTo(1);
      assertThat(asked).isNotDone();
      proxy.thaw();
      assertThat(asked.get(30, TimeUnit.SECONDS)).isEqualTo("late");
    }
    eventually("the session is gone", () -> standby.sessions("silent").isEmpty());
  }

  @Test
  @DisplayName(
      "dials are counted, also those that are never answered or that the server hangs up on")
  void dials(PostgresReplicaSet postgres) throws Exception {
    try (FaultProxy proxy = postgres.standby().proxy()) {
      connect(proxy, "dialled").close();
      assertThat(proxy.accepted()).isEqualTo(1);
      eventually("it is closed", () -> proxy.openServerSockets() == 0);

      proxy.acceptAndHangUp();
      assertThatThrownBy(() -> connect(proxy, "dialled")).isInstanceOf(SQLException.class);
      assertThat(proxy.accepted()).isGreaterThanOrEqualTo(2);
      assertThat(proxy.openServerSockets()).isZero();

      long before = proxy.accepted();
      proxy.acceptAndSayNothing();
      CompletableFuture<Connection> dial =
          CompletableFuture.supplyAsync(
              () -> {
                try {
                  return connect(proxy, "dialled");
                } catch (SQLException e) {
                  throw new IllegalStateException(e);
                }
              });
      eventually("it has dialled", () -> proxy.openClientSockets() == 1);
      assertThat(proxy.accepted()).isEqualTo(before + 1);
      assertThat(proxy.openServerSockets()).isZero();
      assertThat(dial).isNotDone();
      proxy.cut();
      assertThatThrownBy(() -> dial.get(30, TimeUnit.SECONDS))
          .hasRootCauseMessage("Connection reset");
      proxy.heal();
      connect(proxy, "dialled").close();
    }
  }

  @Test
  @DisplayName("a server behind it that is killed is a reset or an end to the client, and refuses")
  void killed(PostgresReplicaSet postgres) throws Exception {
    PostgresServer standby = postgres.standby();
    try (FaultProxy proxy = standby.proxy();
        Connection connection = connect(proxy, "killed")) {
      standby.kill();
      assertThatThrownBy(() -> one(connection, "SELECT 1"))
          .isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> connect(proxy, "killed")).isInstanceOf(SQLException.class);
      standby.restart();
      try (Connection again = connect(proxy, "killed")) {
        assertThat(one(again, "SELECT 1")).isEqualTo("1");
      }
    }
  }

  private static Connection connect(FaultProxy proxy, String application) throws SQLException {
    return DriverManager.getConnection(
        "jdbc:postgresql://"
            + proxy.hostAndPort()
            + "/postgres?user=postgres&sslmode=disable&ApplicationName="
            + application
            + "&connectTimeout=30&socketTimeout=60");
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
