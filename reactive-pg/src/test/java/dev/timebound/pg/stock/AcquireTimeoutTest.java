package dev.timebound.pg.stock;

import static dev.timebound.pg.stock.Stock.PATIENCE;
import static dev.timebound.pg.stock.Stock.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.R2dbcTimeoutException;
import io.r2dbc.spi.ValidationDepth;
import java.time.Duration;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.publisher.Mono;
import reactor.pool.PoolAcquirePendingLimitException;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
class AcquireTimeoutTest {
  private static final Duration BUDGET = Duration.ofMillis(150);

  /** On a busy machine too a dial is made in that time, and a validation. */
  private static final Duration ENOUGH = Duration.ofSeconds(1);

  @Test
  @DisplayName(
      "a budget of 150 ms is spent twice, with a second dial: acquireRetry is 1 by default")
  void twice(PostgresReplicaSet postgres) {
    try (Stock stock =
        new Stock(
            postgres.standby(),
            "stock-twice",
            pool -> pool.initialSize(0).maxSize(2).maxAcquireTime(BUDGET))) {
      stock.proxy().acceptAndSayNothing();
      long start = System.nanoTime();
      assertThatThrownBy(() -> stock.pool().create().block(PATIENCE))
          .isInstanceOf(R2dbcTimeoutException.class);
      assertThat(Duration.ofNanos(System.nanoTime() - start))
          .isGreaterThanOrEqualTo(BUDGET.multipliedBy(2));
      eventually("a second dial", () -> stock.proxy().accepted() == 2);
    }
  }

  @Test
  @DisplayName(
      "a handshake that goes silent holds its slot for ever: the database is back, the pool is not")
  void silentHandshake(PostgresReplicaSet postgres) {
    try (Stock stock =
        new Stock(
            postgres.standby(),
            "stock-silent",
            pool -> pool.initialSize(0).maxSize(1).maxAcquireTime(BUDGET).acquireRetry(0))) {
      stock.proxy().acceptAndSayNothing();
      assertThatThrownBy(() -> stock.pool().create().block(PATIENCE))
          .isInstanceOf(R2dbcTimeoutException.class);
      stock.proxy().accept();
      // the way is free: a connection without the pool works
      assertThat(direct(stock)).isEqualTo("well");
      long dials = stock.proxy().accepted();
      for (int i = 0; i < 10; i++) {
        assertThatThrownBy(() -> stock.pool().create().block(PATIENCE))
            .isInstanceOf(R2dbcTimeoutException.class);
      }
      assertThat(stock.metrics().acquiredSize()).isZero();
      assertThat(stock.proxy().accepted()).isEqualTo(dials);
    }
  }

  @Test
  @DisplayName(
      "with a limit on dials the slot is given back and the socket left open: more sockets than the"
          + " pool may hold")
  void moreSocketsThanTheMaximum(PostgresReplicaSet postgres) {
    try (Stock stock =
        new Stock(
            postgres.standby(),
            "stock-sockets",
            pool ->
                pool.initialSize(0)
                    .maxSize(2)
                    .maxAcquireTime(Duration.ofSeconds(5))
                    .acquireRetry(0)
                    .maxCreateConnectionTime(Duration.ofMillis(100)))) {
      stock.proxy().acceptAndSayNothing();
      for (int i = 0; i < 6; i++) {
        assertThatThrownBy(() -> stock.pool().create().block(PATIENCE));
      }
      assertThat(stock.metrics().allocatedSize()).isLessThanOrEqualTo(2);
      assertThat(stock.proxy().openClientSockets()).isEqualTo(6);
    }
  }

  @Test
  @DisplayName(
      "a database that hangs without a reset makes the pool useless, though new connections work: the"
          + " hung ones are given back and lent again")
  void hungConnectionsAreLentAgain(PostgresReplicaSet postgres) {
    try (Stock stock =
        new Stock(
            postgres.standby(),
            "stock-hung",
            pool ->
                pool.initialSize(2)
                    .maxSize(2)
                    .maxAcquireTime(ENOUGH)
                    .acquireRetry(0)
                    .validationDepth(ValidationDepth.REMOTE))) {
      stock.pool().warmup().block(PATIENCE);
      assertThat(stock.read("SELECT 'warm'").block(PATIENCE)).isEqualTo("warm");
      stock.proxy().freezeEstablished();
      assertThat(direct(stock)).isEqualTo("well");
      long dials = stock.proxy().accepted();
      for (int i = 0; i < 4; i++) {
        assertThatThrownBy(() -> stock.read("SELECT 1").block(PATIENCE))
            .isInstanceOf(R2dbcTimeoutException.class);
      }
      assertThat(stock.proxy().accepted()).isEqualTo(dials);
    }
  }

  @Test
  @DisplayName(
      "the rollback at release has no bound: a hung connection keeps its slot, though new connections"
          + " work")
  void releaseHasNoBound(PostgresReplicaSet postgres) {
    try (Stock stock =
        new Stock(
            postgres.standby(),
            "stock-release",
            pool -> pool.maxSize(1).maxAcquireTime(ENOUGH).acquireRetry(0))) {
      Connection connection = stock.pool().create().block(PATIENCE);
      assertThat(connection).isNotNull();
      Mono.from(connection.beginTransaction()).block(PATIENCE);
      stock.proxy().freezeEstablished();
      var release = Mono.from(connection.close()).subscribe();
      for (int i = 0; i < 4; i++) {
        assertThatThrownBy(() -> stock.read("SELECT 1").block(PATIENCE))
            .isInstanceOf(R2dbcTimeoutException.class);
      }
      assertThat(stock.metrics().acquiredSize()).isEqualTo(1);
      assertThat(release.isDisposed()).isFalse();
      assertThat(direct(stock)).isEqualTo("well");
    }
  }

  @Test
  @DisplayName("past the pending limit the caller gets the pool's error")
  void pendingLimit(PostgresReplicaSet postgres) {
    try (Stock stock =
        new Stock(
            postgres.standby(),
            "stock-pending",
            pool -> pool.maxSize(1).customizer(builder -> builder.maxPendingAcquire(1)))) {
      Connection taken = stock.pool().create().block(PATIENCE);
      assertThat(taken).isNotNull();
      var waiting = stock.pool().create().flatMap(c -> Mono.from(c.close())).subscribe();
      assertThatThrownBy(() -> stock.read("SELECT 1").block(PATIENCE))
          .isInstanceOf(PoolAcquirePendingLimitException.class);
      Mono.from(taken.close()).block(PATIENCE);
      eventually("the one that waited had it", waiting::isDisposed);
    }
  }

  private static String direct(Stock stock) {
    return Mono.usingWhen(
            stock.driver().create(),
            connection -> Stock.first(connection, "SELECT 'well'"),
            Connection::close)
        .blockOptional(PATIENCE)
        .orElseThrow();
  }
}
