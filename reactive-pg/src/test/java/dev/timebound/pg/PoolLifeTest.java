package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.Disposable;

@ExtendWith(PostgresReplicaSetExtension.class)
class PoolLifeTest {
  private static final Duration LONG = Duration.ofSeconds(20);

  private final ReaderPools pools = new ReaderPools();
  private PostgresServer standby;
  private FaultProxy proxy;

  @BeforeEach
  void server(PostgresReplicaSet postgres) {
    standby = postgres.standby();
    proxy = standby.proxy();
  }

  @AfterEach
  void nothingIsLeft() {
    pools.close();
    proxy.close();
    pools.closeWith(standby);
  }

  @Nested
  class Probe {
    @Test
    @DisplayName("PG-30 a probe asks on a connection of its own, though every slot is taken")
    void answers() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      Lease lease = ReaderPools.acquire(pool);
      pool.probe().block(LONG);
      assertThat(proxy.accepted()).isEqualTo(2);
      assertThat(pool.allocated()).isEqualTo(1);
      ReaderPools.until("closed", () -> pool.openSockets() == 1, () -> "" + pool.openSockets());
      lease.release();
      assertThat(pools.counts.all()).isEqualTo(java.util.Map.of("dial ok", 1));
    }

    @Test
    @DisplayName("PG-30 a probe that is given up leaves no socket: in its dial")
    void givenUpInItsDial() {
      proxy.acceptAndSayNothing();
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      assertThatThrownBy(() -> pool.probe().timeout(Duration.ofMillis(100)).block(LONG))
          .hasCauseInstanceOf(TimeoutException.class);
      ReaderPools.until(
          "no socket",
          () -> pool.openSockets() == 0 && proxy.openClientSockets() == 0,
          () -> proxy.connections().toString());
    }

    @Test
    @DisplayName("PG-30 a probe that is given up leaves no socket: at any moment")
    void givenUpAtAnyMoment() {
      ReaderPool pool = pools.to(standby, it -> it.size(1, 1));
      for (int i = 0; i < 60; i++) {
        Disposable probe = pool.probe().subscribe();
        java.util.concurrent.locks.LockSupport.parkNanos(i * 300_000L);
        probe.dispose();
      }
      ReaderPools.until("no socket", () -> pool.openSockets() == 0, () -> "" + pool.openSockets());
      assertThat(pool.allocated()).isZero();
    }

    @Test
    @DisplayName("PG-30 a probe of a reader that refuses fails")
    void refused() {
      proxy.refuse();
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      assertThatThrownBy(() -> pool.probe().block(LONG)).isInstanceOf(Exception.class);
      assertThat(pool.openSockets()).isZero();
    }
  }

  @Nested
  class Close {
    @Test
    @DisplayName("PG-15 closing refuses who waits, ends dials, and waits for what is lent")
    void close() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 2));
      Lease lent = ReaderPools.acquire(pool);
      proxy.acceptAndSayNothing();
      Queue<Throwable> refused = new ConcurrentLinkedQueue<>();
      pool.acquire(LONG).subscribe(lease -> {}, refused::add);
      ReaderPools.until("its dial hangs", () -> proxy.accepted() == 2, () -> "it does not dial");
      Queue<String> closed = new ConcurrentLinkedQueue<>();
      pool.close().doOnTerminate(() -> closed.add("closed")).subscribe();
      assertThat(refused)
          .singleElement()
          .isInstanceOfSatisfying(
              RefusedException.class,
              e -> assertThat(e.reason()).isEqualTo(RouteReason.READER_DIAL_FAILED));
      ReaderPools.until("one socket", () -> pool.openSockets() == 1, () -> "" + pool.openSockets());
      assertThat(closed).isEmpty();
      // the read under way ends as ever
      assertThat(ReaderPools.value(lent, "SELECT 1")).isEqualTo("1");
      lent.release();
      ReaderPools.until("closed", () -> !closed.isEmpty(), () -> "not");
      assertThat(pool.openSockets()).isZero();
      assertThat(pool.allocated()).isZero();
      assertThatThrownBy(() -> pool.acquire(LONG).block(LONG)).isInstanceOf(RefusedException.class);
      pool.start();
      assertThat(pool.allocated()).isZero();
    }

    @Test
    @DisplayName("PG-15 closing ends within its bound though the server is frozen")
    void frozen() {
      ReaderPool pool = pools.to(standby, it -> it.size(3, 3).close(Duration.ofMillis(300)));
      pool.start();
      ReaderPools.idleIs(pool, 3);
      Lease lent = ReaderPools.acquire(pool);
      standby.freeze();
      ReaderPools.run(lent, "SELECT 1").onErrorComplete().subscribe();
      pool.close().block(LONG);
      assertThat(pool.openSockets()).isZero();
      lent.drop(CloseReason.ERROR);
      standby.thaw();
    }

    @Test
    @DisplayName("PG-15 a pool that dials is closed in the middle of it, at any moment")
    void whileDialling() {
      for (int i = 0; i < 60; i++) {
        ReaderPool pool = pools.to(standby, it -> it.size(3, 3));
        pool.start();
        java.util.concurrent.locks.LockSupport.parkNanos(i * 300_000L);
        pool.close().block(LONG);
        assertThat(pool.openSockets()).isZero();
      }
    }
  }

  @Nested
  class Reported {
    @Test
    @DisplayName("PG-1 a restart of the server leaves the pool whole, not stuck")
    void restart() {
      ReaderPool pool = pools.to(standby, it -> it.size(3, 3));
      pool.start();
      ReaderPools.idleIs(pool, 3);
      Lease lent = ReaderPools.acquire(pool);
      ReaderPools.value(lent, "SELECT 1");
      standby.restart();
      lent.release();
      ReaderPools.idleIs(pool, 3);
      for (int i = 0; i < 10; i++) {
        Lease lease = ReaderPools.acquire(pool);
        assertThat(ReaderPools.value(lease, "SELECT 1")).isEqualTo("1");
        lease.release();
      }
      ReaderPools.idleIs(pool, 3);
      assertThat(pools.counts.of(CloseReason.ERROR)).isEqualTo(1);
    }

    @Test
    @DisplayName("PG-15 a server that hangs without a reset does not use the pool up")
    void hangs() {
      ReaderPool pool =
          pools.through(
              proxy,
              it ->
                  it.size(2, 2)
                      .acquire(Duration.ofMillis(100))
                      .dial(Duration.ofMillis(400))
                      .release(Duration.ofMillis(300)));
      pool.start();
      ReaderPools.idleIs(pool, 2);
      proxy.freezeAll();
      for (int i = 0; i < 4; i++) {
        pool.acquire(LONG)
            .flatMap(
                lease -> {
                  ReaderPools.run(lease, "SELECT 1").onErrorComplete().subscribe();
                  lease.release();
                  return reactor.core.publisher.Mono.<Void>empty();
                })
            .onErrorComplete()
            .block(LONG);
      }
      ReaderPools.until(
          "both were closed",
          () -> pools.counts.of(CloseReason.TIMEOUT) == 2,
          () -> pools.counts.all().toString());
      proxy.heal();
      ReaderPools.idleIs(pool, 2);
      Lease lease = ReaderPools.acquire(pool);
      assertThat(ReaderPools.value(lease, "SELECT 1")).isEqualTo("1");
      lease.release();
      ReaderPools.idleIs(pool, 2);
    }

    @Test
    @DisplayName("PG-15 a first statement on a dead connection fails, and its slot is given back")
    void deadConnection() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      Lease lease = ReaderPools.acquire(pool);
      proxy.cut();
      assertThatThrownBy(() -> ReaderPools.value(lease, "SELECT 1")).isInstanceOf(Exception.class);
      lease.release();
      Lease next = ReaderPools.acquire(pool);
      assertThat(ReaderPools.value(next, "SELECT 1")).isEqualTo("1");
      next.release();
      ReaderPools.idleIs(pool, 1);
      assertThat(pools.counts.of(CloseReason.ERROR)).isEqualTo(1);
    }
  }

  @Test
  @DisplayName("PG-17 closes, dials and the pool's figures are meters of the reader's name")
  void meters() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    ReaderPool pool =
        new ReaderPool(
            "west",
            () ->
                PostgresqlConnectionConfiguration.builder()
                    .host(standby.host())
                    .port(standby.port())
                    .username("postgres")
                    .database("postgres")
                    .applicationName(pools.application),
            ReaderPools.settings(it -> it.size(1, 3)),
            PgMeters.of(registry));
    try {
      pool.start();
      ReaderPools.idleIs(pool, 1);
      Lease lease = ReaderPools.acquire(pool);
      assertThat(registry.get("timebound.pg.pool.acquired").tag("reader", "west").gauge().value())
          .isEqualTo(1);
      assertThat(registry.get("timebound.pg.pool.idle").tag("reader", "west").gauge().value())
          .isZero();
      assertThat(registry.get("timebound.pg.pool.pending").tag("reader", "west").gauge().value())
          .isZero();
      assertThat(registry.get("timebound.pg.pool.max").tag("reader", "west").gauge().value())
          .isEqualTo(3);
      lease.drop(CloseReason.OPEN_TRANSACTION);
      assertThat(
              registry
                  .get("timebound.pg.release.closed")
                  .tag("reader", "west")
                  .tag("reason", "open_transaction")
                  .counter()
                  .count())
          .isEqualTo(1);
      ReaderPools.idleIs(pool, 1);
      assertThat(
              registry
                  .get("timebound.pg.dials")
                  .tag("reader", "west")
                  .tag("outcome", "ok")
                  .counter()
                  .count())
          .isEqualTo(2);
    } finally {
      pool.close().block(LONG);
      assertThat(pool.openSockets()).isZero();
    }
  }
}
