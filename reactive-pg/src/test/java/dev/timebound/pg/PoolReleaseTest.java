package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import dev.timebound.test.PostgresSession;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresReplicaSetExtension.class)
class PoolReleaseTest {
  private static final Duration LONG = Duration.ofSeconds(20);
  private static final String BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SELECT 1";

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
    // what it has stalled it holds on to
    proxy.close();
    pools.closeWith(standby);
  }

  private String pid(Lease lease) {
    return "" + ReaderPools.value(lease, "SELECT pg_backend_pid()");
  }

  /** The pool of one connection that the next lease is to have, or not. */
  private String nextPid(ReaderPool pool) {
    Lease next = ReaderPools.acquire(pool);
    String pid = pid(next);
    assertThat(ReaderPools.value(next, "SHOW transaction_isolation")).isEqualTo("read committed");
    next.release();
    ReaderPools.idleIs(pool, 1);
    return pid;
  }

  @Nested
  class GoesBack {
    @Test
    @DisplayName("PG-15 a read that was answered: its ROLLBACK, and back to the pool")
    void answered() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      Lease lease = ReaderPools.acquire(pool);
      String pid = pid(lease);
      lease.began();
      ReaderPools.run(lease, BEGIN).block(LONG);
      lease.release();
      assertThat(lease.isEnded()).isTrue();
      ReaderPools.idleIs(pool, 1);
      assertThat(standby.sessions(pools.application))
          .singleElement()
          .matches(session -> session.query().equals("ROLLBACK"), "its ROLLBACK was the last")
          .matches(session -> session.state().equals("idle"), "idle");
      assertThat(nextPid(pool)).isEqualTo(pid);
      assertThat(pools.counts.all()).containsOnlyKeys("dial ok");
    }

    @Test
    @DisplayName("PG-15 a read whose transaction failed")
    void failedTransaction() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      Lease lease = ReaderPools.acquire(pool);
      String pid = pid(lease);
      lease.began();
      ReaderPools.run(lease, BEGIN).block(LONG);
      assertThatThrownBy(() -> ReaderPools.value(lease, "SELECT 1/0"))
          .hasMessageContaining("division by zero");
      lease.release();
      ReaderPools.idleIs(pool, 1);
      assertThat(nextPid(pool)).isEqualTo(pid);
    }

    @Test
    @DisplayName("PG-15 a read whose BEGIN was not answered yet: the ROLLBACK is not skipped")
    void unansweredBegin() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      Lease lease = ReaderPools.acquire(pool);
      String pid = pid(lease);
      proxy.freezeEstablished();
      lease.began();
      ReaderPools.run(lease, BEGIN).subscribe();
      // the status that the driver knows is still that of the SELECT before: idle
      assertThat(lease.driver().isAutoCommit()).isTrue();
      lease.release();
      proxy.thaw();
      ReaderPools.idleIs(pool, 1);
      assertThat(standby.sessions(pools.application))
          .noneMatch(PostgresSession::isIdleInTransaction);
      assertThat(nextPid(pool)).isEqualTo(pid);
    }

    @Test
    @DisplayName("PG-15 one without a transaction: a trivial round trip")
    void withoutTransaction() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      Lease lease = ReaderPools.acquire(pool);
      String pid = pid(lease);
      lease.release();
      ReaderPools.idleIs(pool, 1);
      assertThat(standby.sessions(pools.application))
          .singleElement()
          .matches(session -> session.query().equals("SELECT 1"), "a trivial statement");
      assertThat(nextPid(pool)).isEqualTo(pid);
    }

    @Test
    @DisplayName("PG-15 one that nobody touched: without a word")
    void untouched() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      Lease lease = ReaderPools.acquire(pool);
      long sent = proxy.bytesToServer();
      lease.release();
      ReaderPools.idleIs(pool, 1);
      Lease again = ReaderPools.acquire(pool);
      again.cancelled();
      ReaderPools.idleIs(pool, 1);
      assertThat(proxy.bytesToServer()).isEqualTo(sent);
      assertThatThrownBy(lease::driver).isInstanceOf(IllegalStateException.class);
    }

    @Test
    @DisplayName("PG-15 once, however often it is ended")
    void once() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 2));
      Lease lease = ReaderPools.acquire(pool);
      pid(lease);
      lease.release();
      lease.drop(CloseReason.ERROR);
      lease.cancelled();
      lease.release();
      ReaderPools.idleIs(pool, 1);
      assertThat(pool.acquired()).isZero();
      assertThat(pools.counts.all()).containsOnlyKeys("dial ok");
    }
  }

  @Nested
  class IsClosed {
    @Test
    @DisplayName("PG-15 PG-17 where the check is not answered in time: timeout")
    void timeout() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1).release(Duration.ofSeconds(1)));
      pool.start();
      ReaderPools.idleIs(pool, 1);
      Lease lease = ReaderPools.acquire(pool);
      String pid = pid(lease);
      proxy.freezeEstablished();
      lease.release();
      // new connections get through: the floor is filled again
      ReaderPools.idleIs(pool, 1);
      assertThat(pool.acquired()).isZero();
      assertThat(nextPid(pool)).isNotEqualTo(pid);
      assertThat(pools.counts.all()).isEqualTo(Map.of("dial ok", 2, "timeout", 1));
      ReaderPools.until(
          "the old socket is closed", () -> pool.openSockets() == 1, () -> "" + pool.openSockets());
    }

    @Test
    @DisplayName("PG-15 PG-17 where the connection is broken: error")
    void error() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      Lease lease = ReaderPools.acquire(pool);
      String pid = pid(lease);
      standby.execute("SELECT pg_terminate_backend(?)", Integer.valueOf(pid));
      lease.release();
      ReaderPools.until("counted", () -> pools.counts.of(CloseReason.ERROR) == 1, () -> "not");
      ReaderPools.until("slot free", () -> pool.allocated() == 0, () -> "" + pool.allocated());
      assertThat(nextPid(pool)).isNotEqualTo(pid);
      assertThat(pools.counts.all()).isEqualTo(Map.of("dial ok", 2, "error", 1));
    }

    @Test
    @DisplayName("PG-15 PG-17 where it is in a transaction still: open_transaction")
    void openTransaction() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      Lease lease = ReaderPools.acquire(pool);
      String pid = pid(lease);
      // not told of by began(): the check sees it all the same
      ReaderPools.run(lease, BEGIN).block(LONG);
      lease.release();
      ReaderPools.until(
          "counted", () -> pools.counts.of(CloseReason.OPEN_TRANSACTION) == 1, () -> "not");
      assertThat(nextPid(pool)).isNotEqualTo(pid);
      assertThat(pools.counts.all()).isEqualTo(Map.of("dial ok", 2, "open_transaction", 1));
      assertThat(standby.sessions(pools.application))
          .noneMatch(PostgresSession::isIdleInTransaction);
    }

    @Test
    @DisplayName("PG-15a PG-17 at once where it is dropped, whatever its server does")
    void dropped() {
      ReaderPool pool = pools.to(standby, it -> it.size(1, 1));
      Lease lease = ReaderPools.acquire(pool);
      pid(lease);
      standby.freeze();
      lease.drop(CloseReason.ABANDONED);
      // before anything could be answered
      assertThat(pool.allocated()).isZero();
      assertThat(pool.acquired()).isZero();
      ReaderPools.until(
          "its socket is closed", () -> pool.openSockets() == 0, () -> "" + pool.openSockets());
      assertThat(pools.counts.of(CloseReason.ABANDONED)).isEqualTo(1);
      standby.thaw();
    }

    @Test
    @DisplayName("PG-16 dropped in mid-BEGIN on a frozen server: no session stays in transaction")
    void droppedInMidBegin() {
      ReaderPool pool = pools.to(standby, it -> it.size(1, 2));
      Lease lease = ReaderPools.acquire(pool);
      pid(lease);
      standby.freeze();
      lease.began();
      ReaderPools.run(lease, BEGIN).onErrorComplete().subscribe();
      lease.drop(CloseReason.OPEN_TRANSACTION);
      standby.thaw();
      ReaderPools.until(
          "its session is gone",
          () -> standby.sessions(pools.application).isEmpty(),
          () -> standby.sessions(pools.application).toString());
      assertThat(pools.counts.of(CloseReason.OPEN_TRANSACTION)).isEqualTo(1);
    }

    @Test
    @DisplayName("PG-15 a close that cannot even say goodbye is bounded: its socket is closed")
    void closeThatCannotBeSent() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1).close(Duration.ofSeconds(2)));
      Lease lease = ReaderPools.acquire(pool);
      pid(lease);
      proxy.freezeEstablished();
      // more than the sockets between take in: what follows it waits
      ReaderPools.run(lease, "SELECT 1 /*" + "x".repeat(64 << 20) + "*/")
          .onErrorComplete()
          .subscribe();
      lease.connection().closeGently();
      assertThat(pool.openSockets()).isOne();
      ReaderPools.until(
          "its socket is closed", () -> pool.openSockets() == 0, () -> "" + pool.openSockets());
      lease.drop(CloseReason.ERROR);
    }

    @Test
    @DisplayName(
        "PG-15 PG-17 where the read's own SQL ended its transaction: what that set is gone")
    void endedByItsText() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1));
      Lease lease = ReaderPools.acquire(pool);
      String pid = pid(lease);
      lease.began();
      ReaderPools.run(lease, BEGIN).block(LONG);
      lease.proved();
      ReaderPools.run(lease, "SET statement_timeout = 7777; COMMIT").block(LONG);
      lease.release();
      ReaderPools.until(
          "counted", () -> pools.counts.of(CloseReason.OPEN_TRANSACTION) == 1, () -> "not");
      assertThat(nextPid(pool)).isNotEqualTo(pid);
    }

    @Test
    @DisplayName("PG-15 a close on a frozen server holds up nobody: its slot is free before it")
    void closeOnAFrozenServer() {
      ReaderPool pool =
          pools.through(proxy, it -> it.size(1, 1).ages(Duration.ofMillis(300), LONG));
      pool.start();
      ReaderPools.idleIs(pool, 1);
      // it grows old while its peer does not read: neither answer nor FIN will come
      proxy.freezeEstablished();
      ReaderPools.until(
          "another in its slot", () -> pools.counts.dials("ok") >= 2, () -> "" + pool.allocated());
      assertThat(pool.allocated()).isEqualTo(1);
    }
  }
}
