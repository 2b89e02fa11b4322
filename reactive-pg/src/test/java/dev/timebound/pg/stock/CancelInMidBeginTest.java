package dev.timebound.pg.stock;

import static dev.timebound.pg.stock.Stock.PATIENCE;
import static dev.timebound.pg.stock.Stock.eventually;
import static dev.timebound.pg.stock.Stock.first;
import static io.r2dbc.spi.IsolationLevel.REPEATABLE_READ;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import io.r2dbc.postgresql.api.PostgresTransactionDefinition;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.transaction.reactive.TransactionalOperator;
import org.springframework.transaction.support.DefaultTransactionDefinition;
import reactor.core.publisher.Mono;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
class CancelInMidBeginTest {
  private static final PostgresTransactionDefinition READ =
      PostgresTransactionDefinition.from(REPEATABLE_READ).readOnly();

  @Test
  @DisplayName(
      "a caller that leaves while BEGIN is under way leaves its session idle in transaction, and the"
          + " next borrower reads the past in it")
  void nextBorrowerInsideAStaleTransaction(PostgresReplicaSet postgres) {
    PostgresServer primary = postgres.primary();
    PostgresServer standby = postgres.standby();
    primary.execute("CREATE TABLE IF NOT EXISTS stock_begin (n int)");
    primary.execute("TRUNCATE stock_begin");
    standby.awaitReplay();
    try (Stock stock = new Stock(standby, "stock-begin", pool -> pool.maxSize(1))) {
      assertThat(stock.read("SELECT 'warm'").block(PATIENCE)).isEqualTo("warm");
      standby.freeze();
      Mono<String> read =
          Mono.usingWhen(
              stock.pool().create(),
              connection ->
                  Mono.from(connection.beginTransaction(READ))
                      .then(first(connection, "SELECT count(*) FROM stock_begin")),
              Connection::close);
      assertThat(read.timeout(Duration.ofSeconds(1)).onErrorReturn("left").block(PATIENCE))
          .isEqualTo("left");
      // given back as if nothing were the matter
      eventually("it is idle in the pool", () -> stock.metrics().idleSize() == 1);
      standby.thaw();
      eventually("its session is in transaction", () -> stock.idleInTransaction() == 1);

      String seen = stock.read("SELECT count(*) FROM stock_begin").block(PATIENCE);
      assertThat(seen).isEqualTo("0");
      primary.execute("INSERT INTO stock_begin VALUES (1)");
      standby.awaitReplay();
      assertThat(standby.value("SELECT count(*) FROM stock_begin")).isEqualTo("1");
      assertThat(stock.read("SELECT count(*) FROM stock_begin").block(PATIENCE)).isEqualTo("0");
      assertThat(stock.read("SHOW transaction_isolation").block(PATIENCE))
          .isEqualTo("repeatable read");
      assertThat(stock.idleInTransaction()).isEqualTo(1);
    }
  }

  @Test
  @DisplayName(
      "under Spring's transaction manager a timeout while BEGIN is under way leaves the session idle"
          + " in transaction too")
  void springsTransactionManager(PostgresReplicaSet postgres) {
    PostgresServer standby = postgres.standby();
    try (Stock stock = new Stock(standby, "stock-spring-begin", pool -> pool.maxSize(1))) {
      DatabaseClient client = DatabaseClient.create(stock.pool());
      DefaultTransactionDefinition readOnly = new DefaultTransactionDefinition();
      readOnly.setReadOnly(true);
      // the only timeout that a transaction of Spring's knows: to no avail
      readOnly.setTimeout(1);
      TransactionalOperator transactions =
          TransactionalOperator.create(new R2dbcTransactionManager(stock.pool()), readOnly);
      Mono<Object> read = client.sql("SELECT 1 AS n").map(row -> row.get("n")).one();
      assertThat(read.as(transactions::transactional).block(PATIENCE)).isEqualTo(1);
      standby.freeze();
      assertThat(
              read.as(transactions::transactional)
                  .timeout(Duration.ofSeconds(1))
                  .onErrorReturn("left")
                  .block(PATIENCE))
          .isEqualTo("left");
      standby.thaw();
      eventually("its session is in transaction", () -> stock.idleInTransaction() == 1);
      eventually("and its connection is idle in the pool", () -> stock.metrics().idleSize() == 1);
      assertThat(read.block(PATIENCE)).isEqualTo(1);
      assertThat(stock.idleInTransaction()).isEqualTo(1);
    }
  }
}
