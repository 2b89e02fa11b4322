package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.test.scheduler.VirtualTimeScheduler;

@ExtendWith(PostgresReplicaSetExtension.class)
class PoolFloorTest {
  private static final Duration NEVER = Duration.ofHours(1);

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

  @Test
  @DisplayName("PG-1 building a pool dials nothing")
  void buildingDialsNothing() {
    try (FaultProxy proxy = standby.proxy()) {
      ReaderPool pool = pools.through(proxy, any -> any);
      assertThat(pool.allocated()).isZero();
      pool.start();
      ReaderPools.idleIs(pool, 2);
      // what was dialled was dialled by the start
      assertThat(proxy.accepted()).isEqualTo(2);
    }
  }

  @RepeatedTest(20)
  @DisplayName("PG-1 the start fills the floor and not more, all idle")
  void exactlyTheFloor() {
    ReaderPool pool = pools.to(standby, it -> it.size(4, 10));
    pool.start();
    ReaderPools.idleIs(pool, 4);
    assertThat(pool.acquired()).isZero();
    assertThat(pool.pending()).isZero();
    assertThat(pool.allocated()).isEqualTo(4);
    assertThat(standby.sessions(pools.application)).hasSize(4);
    assertThat(pools.counts.dials("ok")).isEqualTo(4);
    // and it lends them without another dial
    List<Lease> leases = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      leases.add(ReaderPools.acquire(pool));
    }
    assertThat(pool.acquired()).isEqualTo(4);
    leases.forEach(Lease::release);
    ReaderPools.idleIs(pool, 4);
    assertThat(pools.counts.dials("ok")).isEqualTo(4);
  }

  @Test
  @DisplayName("PG-1 the floor is refilled when the server ends an idle connection")
  void refilledAfterAnIdleOneIsClosed() {
    ReaderPool pool = pools.to(standby, it -> it.size(3, 10));
    pool.start();
    ReaderPools.idleIs(pool, 3);
    int victim = standby.sessions(pools.application).get(0).pid();
    standby.execute("SELECT pg_terminate_backend(?)", victim);
    ReaderPools.until(
        "another dial", () -> pools.counts.dials("ok") == 4, () -> pools.counts.all().toString());
    ReaderPools.idleIs(pool, 3);
    // its own end it told before it was over
    Eventually.eventually(
        () ->
            assertThat(standby.sessions(pools.application))
                .hasSize(3)
                .noneMatch(session -> session.pid() == victim));
  }

  private void endSession() {
    int victim = standby.sessions(pools.application).get(0).pid();
    standby.execute("SELECT pg_terminate_backend(?)", victim);
  }

  private void dialled(int times) {
    ReaderPools.until(
        times + " dials",
        () -> pools.counts.dials("ok") == times,
        () -> pools.counts.all().toString());
  }

  @Test
  @DisplayName("PG-1 one that is closed right after it was dialled is not dialled again at once")
  void shortLived() {
    VirtualTimeScheduler time = VirtualTimeScheduler.create();
    ReaderPool pool = pools.to(standby, it -> it.size(1, 3).scheduler(time));
    pool.start();
    ReaderPools.idleIs(pool, 1);
    endSession();
    // were it dialled at once, its slot would be taken again in the moment in which it is free
    ReaderPools.until("none", () -> pool.allocated() == 0, () -> "there are " + pool.allocated());
    time.advanceTimeBy(Redial.FIRST);
    dialled(2);
    ReaderPools.idleIs(pool, 1);
    time.advanceTimeBy(Duration.ofSeconds(2));
    endSession();
    dialled(3);
  }

  @Test
  @DisplayName("PG-1 those that were dialled together are not replaced together")
  void agesDiffer() {
    VirtualTimeScheduler time = VirtualTimeScheduler.create();
    Duration life = Duration.ofSeconds(1000);
    ReaderPool pool =
        pools.to(standby, it -> it.size(8, 20).ages(life, NEVER).dial(NEVER).scheduler(time));
    pool.start();
    ReaderPools.idleIs(pool, 8);
    time.advanceTimeBy(Duration.ofSeconds(895));
    assertThat(pool.allocated()).as("none before nine tenths of its time").isEqualTo(8);
    time.advanceTimeBy(Duration.ofSeconds(95));
    ReaderPools.until(
        "some were replaced",
        () -> pools.counts.dials("ok") > 8,
        () -> pools.counts.all().toString());
  }

  @Test
  @DisplayName("PG-1 the floor is refilled when a lent connection is dropped")
  void refilledAfterADrop() {
    ReaderPool pool = pools.to(standby, it -> it.size(2, 10));
    pool.start();
    ReaderPools.idleIs(pool, 2);
    ReaderPools.acquire(pool).drop(CloseReason.ERROR);
    ReaderPools.idleIs(pool, 2);
    assertThat(pools.counts.dials("ok")).isEqualTo(3);
  }

  @Test
  @DisplayName("PG-1 one that is too old is closed after another has been dialled in its place")
  void replacedAtItsAge() {
    ReaderPool pool = pools.to(standby, it -> it.size(1, 3).ages(Duration.ofMillis(400), NEVER));
    pool.start();
    ReaderPools.idleIs(pool, 1);
    int first = standby.sessions(pools.application).get(0).pid();
    ReaderPools.until(
        "the first one is gone",
        () -> standby.sessions(pools.application).stream().noneMatch(it -> it.pid() == first),
        () -> standby.sessions(pools.application).toString());
    assertThat(pool.idle()).isPositive();
    assertThat(pools.counts.dials("ok")).isGreaterThan(1);
  }

  @Test
  @DisplayName("PG-1 what was idle too long is closed down to the floor, never below")
  void idleOnesGoDownToTheFloor() {
    ReaderPool pool = pools.to(standby, it -> it.size(2, 10).ages(NEVER, Duration.ofMillis(300)));
    pool.start();
    ReaderPools.idleIs(pool, 2);
    List<Lease> leases = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      leases.add(ReaderPools.acquire(pool));
    }
    leases.forEach(Lease::release);
    ReaderPools.idleIs(pool, 2);
    ReaderPools.until(
        "as many sessions",
        () -> standby.sessions(pools.application).size() == 2,
        () -> standby.sessions(pools.application).toString());
    // the two that are left were not dialled again
    assertThat(pools.counts.dials("ok")).isEqualTo(6);
    assertThat(pools.counts.all()).containsOnlyKeys("dial ok");
  }

  @Test
  @DisplayName(
      "PG-2 a reader that is down at start refuses the acquire, and is filled once it is up")
  void downAtStart() {
    try (FaultProxy proxy = standby.proxy()) {
      proxy.refuse();
      ReaderPool pool = pools.through(proxy, it -> it.size(2, 10));
      pool.start();
      ReaderPools.until(
          "two rounds of dials",
          () -> pools.counts.dials("failed") >= 4,
          () -> pools.counts.all().toString());
      assertThatThrownBy(() -> pool.acquire(Duration.ofSeconds(1)).block())
          .isInstanceOfSatisfying(
              RefusedException.class,
              e -> assertThat(e.reason()).isEqualTo(RouteReason.READER_DIAL_FAILED));
      proxy.accept();
      ReaderPools.idleIs(pool, 2);
      Lease lease = ReaderPools.acquire(pool);
      assertThat(ReaderPools.value(lease, "SELECT 1")).isEqualTo("1");
      lease.release();
      ReaderPools.idleIs(pool, 2);
    }
  }
}
