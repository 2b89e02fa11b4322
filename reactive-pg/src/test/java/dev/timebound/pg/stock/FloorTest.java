package dev.timebound.pg.stock;

import static dev.timebound.pg.stock.Stock.PATIENCE;
import static dev.timebound.pg.stock.Stock.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.R2dbcTimeoutException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
class FloorTest {

  @Test
  @DisplayName("minIdle is not kept: what was idle too long is closed, and nothing takes its place")
  void notRefilled(PostgresReplicaSet postgres) {
    Duration look = Duration.ofMillis(50);
    try (Stock stock =
        new Stock(
            postgres.standby(),
            "stock-floor",
            pool ->
                pool.minIdle(2)
                    .initialSize(2)
                    .maxSize(5)
                    .maxIdleTime(Duration.ofSeconds(2))
                    .backgroundEvictionInterval(look))) {
      stock.pool().warmup().block(PATIENCE);
      assertThat(stock.metrics().idleSize()).isEqualTo(2);
      eventually("all are gone", () -> stock.metrics().allocatedSize() == 0);
      eventually("on the server too", () -> stock.sessions() == 0);
      long dials = stock.proxy().accepted();
      // the pool looks ten times more, and does not mind
      AtomicBoolean refilled = new AtomicBoolean();
      Flux.interval(look)
          .take(10)
          .doOnNext(tick -> refilled.compareAndSet(false, stock.metrics().allocatedSize() > 0))
          .blockLast(PATIENCE);
      assertThat(refilled).isFalse();
      assertThat(stock.proxy().accepted()).isEqualTo(dials);
    }
  }

  @Nested
  class Warmup {
    @Test
    @DisplayName(
        "a warmup whose dial failed takes slots for good: a pool of 5 lends 1 from then on")
    void failed(PostgresReplicaSet postgres) {
      try (Stock stock =
          new Stock(postgres.standby(), "stock-warmup-failed", pool -> settings(pool, 5))) {
        stock.proxy().acceptAndReset();
        assertThatThrownBy(() -> stock.pool().warmup().block(PATIENCE));
        stock.proxy().accept();
        Connection one = stock.pool().create().block(PATIENCE);
        assertThat(one).isNotNull();
        for (int i = 0; i < 5; i++) {
          assertThatThrownBy(() -> stock.pool().create().block(PATIENCE))
              .isInstanceOf(R2dbcTimeoutException.class);
        }
        assertThat(stock.metrics().acquiredSize()).isEqualTo(1);
        assertThat(stock.metrics().idleSize()).isZero();
        Mono.from(one.close()).block(PATIENCE);
      }
    }

    @Test
    @DisplayName("a warmup that was cancelled takes slots for good")
    void cancelled(PostgresReplicaSet postgres) {
      try (Stock stock =
          new Stock(postgres.standby(), "stock-warmup-cancelled", pool -> settings(pool, 2))) {
        stock.proxy().acceptAndSayNothing();
        assertThatThrownBy(
            () -> stock.pool().warmup().timeout(Duration.ofMillis(200)).block(PATIENCE));
        stock.proxy().accept();
        useless(stock);
      }
    }

    private static ConnectionPoolConfiguration.Builder settings(
        ConnectionPoolConfiguration.Builder pool, int size) {
      return pool.minIdle(size)
          .initialSize(size)
          .maxSize(size)
          .acquireRetry(0)
          .maxAcquireTime(Duration.ofSeconds(1));
    }

    private void useless(Stock stock) {
      long dials = stock.proxy().accepted();
      for (int i = 0; i < 5; i++) {
        assertThatThrownBy(() -> stock.read("SELECT 1").block(PATIENCE))
            .isInstanceOf(R2dbcTimeoutException.class);
      }
      assertThat(stock.metrics().acquiredSize()).isZero();
      assertThat(stock.metrics().idleSize()).isZero();
      assertThat(stock.proxy().accepted()).isEqualTo(dials);
    }
  }
}
