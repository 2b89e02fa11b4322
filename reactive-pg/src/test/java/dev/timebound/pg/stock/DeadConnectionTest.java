package dev.timebound.pg.stock;

import static dev.timebound.pg.stock.Stock.PATIENCE;
import static dev.timebound.pg.stock.Stock.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import io.r2dbc.spi.R2dbcException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
class DeadConnectionTest {

  @Test
  @DisplayName("the first statement on a connection whose session has died is the caller's error")
  void firstStatement(PostgresReplicaSet postgres) throws Exception {
    PostgresServer standby = postgres.standby();
    try (Stock stock =
        new Stock(
            standby, "stock-dead", pool -> pool.maxSize(1).maxAcquireTime(Duration.ofSeconds(5)))) {
      assertThat(stock.read("SELECT 'warm'").block(PATIENCE)).isEqualTo("warm");
      // the news of the session's end is under way while the connection is lent
      stock.proxy().freezeEstablished();
      int pid = standby.sessions("stock-dead").get(0).pid();
      standby.execute("SELECT pg_terminate_backend(" + pid + ")");
      eventually("the session is gone", () -> stock.sessions() == 0);
      CompletableFuture<String> read = stock.read("SELECT 'answer'").toFuture();
      eventually("it is lent", () -> stock.metrics().acquiredSize() == 1);
      stock.proxy().thaw();
      assertThatThrownBy(() -> read.get(30, TimeUnit.SECONDS))
          .hasCauseInstanceOf(R2dbcException.class);
      eventually("its slot is free again", () -> stock.metrics().acquiredSize() == 0);
      // it may be lent once more, before the news of its end is through
      eventually(
          "it answers again",
          () -> "1".equals(stock.read("SELECT 1").onErrorReturn("error").block(PATIENCE)));
    }
  }

  @Test
  @DisplayName(
      "after a restart of the server callers get errors from connections long dead, until those are"
          + " used up")
  void restart(PostgresReplicaSet postgres) {
    PostgresServer standby = postgres.standby();
    try (Stock stock =
        new Stock(
            standby,
            "stock-restart",
            pool -> pool.initialSize(4).maxSize(4).maxAcquireTime(Duration.ofSeconds(5)))) {
      stock.pool().warmup().block(PATIENCE);
      standby.restart();
      eventually("the old ones are closed", () -> stock.proxy().openClientSockets() == 0);
      assertThat(standby.value("SELECT 'up'")).isEqualTo("up");
      assertThatThrownBy(() -> stock.read("SELECT 1").block(PATIENCE))
          .isInstanceOf(R2dbcException.class)
          .hasMessageContaining("validation failed");
      // it does not stay like that
      eventually(
          "it answers again",
          () -> "1".equals(stock.read("SELECT 1").onErrorReturn("error").block(PATIENCE)));
    }
  }

  @Test
  @DisplayName("a dial that the server hangs up on is the caller's error; its slot is free again")
  void hungUpOn(PostgresReplicaSet postgres) {
    try (Stock stock =
        new Stock(
            postgres.standby(),
            "stock-hung-up",
            pool -> pool.initialSize(0).maxSize(1).maxAcquireTime(Duration.ofSeconds(5)))) {
      stock.proxy().acceptAndHangUp();
      assertThatThrownBy(() -> stock.read("SELECT 1").block(PATIENCE))
          .isInstanceOf(R2dbcException.class);
      stock.proxy().accept();
      assertThat(stock.read("SELECT 1").block(PATIENCE)).isEqualTo("1");
    }
  }
}
