package dev.timebound.pg.stock;

import static dev.timebound.pg.stock.Stock.PATIENCE;
import static dev.timebound.pg.stock.Stock.eventually;
import static dev.timebound.pg.stock.Stock.first;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import dev.timebound.test.ProxyConnection;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Wrapped;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.publisher.Mono;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
class CancelledStatementTest {
  private static final int LOCK = 731;

  @Test
  @DisplayName(
      "a statement whose caller left runs on; its connection is lent again at once, and the next"
          + " borrower waits behind it")
  void runsOn(PostgresReplicaSet postgres) throws Exception {
    PostgresServer primary = postgres.primary();
    try (Stock stock = new Stock(primary, "stock-cancel", pool -> pool.maxSize(1));
        java.sql.Connection holder = primary.connect();
        Statement hold = holder.createStatement()) {
      hold.execute("SELECT pg_advisory_lock(" + LOCK + ")");
      assertThat(stock.read("SELECT 'warm'").block(PATIENCE)).isEqualTo("warm");
      Mono<String> waits = stock.read("SELECT pg_advisory_lock(" + LOCK + ")::text");
      assertThat(waits.timeout(Duration.ofSeconds(1)).onErrorReturn("left").block(PATIENCE))
          .isEqualTo("left");
      eventually("it is idle in the pool", () -> stock.metrics().idleSize() == 1);
      assertThat(stock.running()).isEqualTo(1);

      CompletableFuture<String> next = stock.read("SELECT 'mine'").toFuture();
      eventually("it was lent again", () -> stock.metrics().acquiredSize() == 1);
      // as long as the statement that no one waits for runs
      assertThat(primary.sessions("stock-cancel"))
          .singleElement()
          .satisfies(session -> assertThat(session.query()).contains("pg_advisory_lock"));
      assertThat(next).isNotDone();
      hold.execute("SELECT pg_advisory_unlock(" + LOCK + ")");
      assertThat(next.get(30, TimeUnit.SECONDS)).isEqualTo("mine");
    }
  }

  @Test
  @DisplayName(
      "a cancel request that is late kills the statement of the connection's next borrower")
  void lateCancelRequest(PostgresReplicaSet postgres) throws SQLException {
    PostgresServer primary = postgres.primary();
    try (Stock stock = new Stock(primary, "stock-late", pool -> pool.maxSize(1))) {
      assertThat(stock.read("SELECT 'warm'").block(PATIENCE)).isEqualTo("warm");
      // connections made from here on are slow to get through
      stock.proxy().freezeAll();
      stock.proxy().connections().forEach(ProxyConnection::thaw);

      Mono<String> canceledRead =
          Mono.usingWhen(
              stock.pool().create(),
              connection -> first(connection, "SELECT pg_sleep(0.3)::text"),
              Connection::close,
              (connection, error) -> connection.close(),
              connection ->
                  cancelRequest(connection)
                      .timeout(Duration.ofMillis(500))
                      .onErrorComplete()
                      .then(Mono.from(connection.close())));
      assertThat(canceledRead.timeout(Duration.ofMillis(100)).onErrorReturn("left").block(PATIENCE))
          .isEqualTo("left");
      eventually("it is back in the pool", () -> stock.metrics().idleSize() == 1);
      eventually("the first statement ended by itself", () -> stock.running() == 0);
      CompletableFuture<String> next = stock.read("SELECT pg_sleep(60)::text").toFuture();
      eventually("the next one runs", () -> stock.running() == 1);
      stock.proxy().thaw();
      assertThatThrownBy(() -> next.get(30, TimeUnit.SECONDS))
          .hasMessageContaining("canceling statement due to user request");
    }
  }

  private static Mono<Void> cancelRequest(Connection connection) {
    Object driver = ((Wrapped<?>) connection).unwrap();
    return ((PostgresqlConnection) driver).cancelRequest();
  }
}
