package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import dev.timebound.test.PostgresSession;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.Disposable;

@ExtendWith(PostgresReplicaSetExtension.class)
class PoolCancelTest {
  private final ReaderPools pools = new ReaderPools();
  private PostgresServer standby;

  @BeforeEach
  void server(PostgresReplicaSet postgres) {
    standby = postgres.standby();
  }

  @AfterEach
  void nothingIsLeft() {
    pools.closeWith(standby);
  }

  private Set<Integer> running() {
    Set<Integer> pids = new HashSet<>();
    for (PostgresSession session : standby.sessions(pools.application)) {
      if (session.isRunning()) {
        pids.add(session.pid());
      }
    }
    return pids;
  }

  private void runs(boolean expected) {
    ReaderPools.until(
        expected ? "a statement runs" : "no statement runs",
        () -> running().isEmpty() != expected,
        () -> standby.sessions(pools.application).toString());
  }

  private Lease sleeping(ReaderPool pool, String seconds) {
    Lease lease = ReaderPools.acquire(pool);
    lease.began();
    Disposable read =
        ReaderPools.run(lease, "BEGIN READ ONLY")
            .then(ReaderPools.run(lease, "SELECT pg_sleep(" + seconds + ")"))
            .subscribe(any -> {}, cancelled -> {});
    runs(true);
    read.dispose();
    return lease;
  }

  @Test
  @DisplayName("PG-19 what runs on is cancelled on the server, and its connection closed")
  void cancelled() {
    ReaderPool pool = pools.to(standby, it -> it.size(1, 1));
    Lease lease = sleeping(pool, "30");
    int pid = running().iterator().next();
    int logged = standby.log().size();
    long left = System.nanoTime();
    lease.cancelled();
    runs(false);
    assertThat(Duration.ofNanos(System.nanoTime() - left)).isLessThan(Duration.ofSeconds(15));
    ReaderPools.until("counted", () -> pools.counts.of(CloseReason.CANCELLED) == 1, () -> "not");
    ReaderPools.until(
        "its session is gone",
        () -> standby.sessions(pools.application).stream().noneMatch(it -> it.pid() == pid),
        () -> standby.sessions(pools.application).toString());
    List<String> log = standby.log();
    assertThat(log.subList(logged, log.size()))
        .anyMatch(line -> line.contains("canceling statement due to user request"));
    assertThat(pool.acquired()).isZero();
    assertThat(pools.counts.all()).isEqualTo(Map.of("dial ok", 1, "cancelled", 1));
  }

  @Test
  @DisplayName("PG-19 what ends by itself within the grace time keeps its connection")
  void endsByItself() {
    ReaderPool pool = pools.to(standby, it -> it.size(1, 1).grace(Duration.ofSeconds(10)));
    Lease lease = sleeping(pool, "2");
    int pid = running().iterator().next();
    lease.cancelled();
    ReaderPools.idleIs(pool, 1);
    Lease next = ReaderPools.acquire(pool);
    assertThat(ReaderPools.value(next, "SELECT pg_backend_pid()")).isEqualTo("" + pid);
    assertThat(next.driver().isAutoCommit()).isTrue();
    next.release();
    assertThat(pools.counts.all()).containsOnlyKeys("dial ok");
  }

  @Test
  @DisplayName("PG-19 its slot is free while the cancel request is under way")
  void slotFirst() {
    try (FaultProxy proxy = standby.proxy()) {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1).cancel(Duration.ofSeconds(3)));
      Lease lease = sleeping(pool, "30");
      // the request's own connection is taken and never answered
      proxy.acceptAndSayNothing();
      lease.cancelled();
      ReaderPools.until(
          "the slot is free, the sockets are not closed yet",
          () -> pool.allocated() == 0 && pool.openSockets() > 0,
          () -> pool.allocated() + " allocated, " + pool.openSockets() + " open");
      // and at the request's bound both sockets are closed
      ReaderPools.until("closed", () -> pool.openSockets() == 0, () -> "" + pool.openSockets());
      // the server looks for its client by itself
      runs(false);
    }
  }

  @Test
  @DisplayName("PG-19 on a frozen server no statement runs once it has thawed")
  void frozen() {
    ReaderPool pool = pools.to(standby, it -> it.size(1, 1));
    Lease lease = sleeping(pool, "30");
    standby.freeze();
    lease.cancelled();
    ReaderPools.until("closed", () -> pool.openSockets() == 0, () -> "" + pool.openSockets());
    standby.thaw();
    long thawed = System.nanoTime();
    runs(false);
    assertThat(Duration.ofNanos(System.nanoTime() - thawed)).isLessThan(Duration.ofSeconds(15));
    ReaderPools.until(
        "no session",
        () -> standby.sessions(pools.application).isEmpty(),
        () -> standby.sessions(pools.application).toString());
    assertThat(pools.counts.of(CloseReason.CANCELLED)).isEqualTo(1);
  }

  @Test
  @DisplayName("PG-19 a statement whose client is gone without a word is ended by the server")
  void clientGone() {
    ReaderPool pool = pools.to(standby, it -> it.size(1, 1));
    Lease lease = sleeping(pool, "30");
    lease.drop(CloseReason.ABANDONED);
    runs(false);
    assertThat(pools.counts.all()).isEqualTo(Map.of("dial ok", 1, "abandoned", 1));
  }

  @Test
  @DisplayName("PG-19 no late cancel hits the next borrower's statement")
  void neverTheNextBorrower() {
    // no grace: the request leaves while the statement ends, which is when it comes late
    ReaderPool pool = pools.to(standby, it -> it.size(1, 2).grace(Duration.ofMillis(1)));
    Random random = new Random(19);
    for (int i = 0; i < 150; i++) {
      Lease lease = ReaderPools.acquire(pool);
      ReaderPools.run(lease, "SELECT pg_sleep(" + random.nextInt(4) / 1000.0 + ")")
          .onErrorComplete()
          .subscribe();
      lease.cancelled();
      Lease next = ReaderPools.acquire(pool);
      assertThat(ReaderPools.value(next, "SELECT 7 FROM pg_sleep(0.005)")).isEqualTo("7");
      next.release();
    }
    assertThat(pools.counts.of(CloseReason.CANCELLED)).isPositive();
    assertThat(pools.counts.of(CloseReason.ERROR)).isZero();
  }
}
