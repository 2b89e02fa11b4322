package dev.timebound.health;

import static dev.timebound.health.FailureKind.CONNECTION;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

class IsolationTest {
  private static final HealthPolicy POLICY =
      HealthPolicy.consecutiveFailures(1).confirmedByProbe(ofMillis(100)).build();

  private static Claim<FakeMember> on(HealthGroup<FakeMember> g, FakeMember m, FailHandle handle) {
    return requireNonNull(g.inOrder(List.of(m), handle).next());
  }

  @Test
  @DisplayName("HE-9 a fail handle that throws keeps none of the others from being told")
  void throwingHandle() {
    try (Bench b =
        new Bench(HealthPolicy.consecutiveFailures(1).cooldown(ofSeconds(5)).build(), 2)) {
      AtomicInteger told = new AtomicInteger();
      for (int i = 0; i < 4; i++) {
        b.kept(
            b.group
                .inOrder(
                    List.of(b.m(0)),
                    e -> {
                      told.incrementAndGet();
                      throw new AssertionError("handle");
                    })
                .next());
      }
      b.on(0).failed(CONNECTION, null);
      assertThat(told).hasValue(4);
      assertThat(b.health(0).open()).isZero();
    }
  }

  @Test
  @DisplayName("HE-9 a member that throws where a Mono was due is as one whose Mono failed")
  void throwingMember() {
    try (Bench b = new Bench(POLICY, 2)) {
      b.m(0).prepare =
          () -> {
            throw new IllegalStateException("prepare");
          };
      b.on(0).failed(CONNECTION, null);
      assertThat(b.status(0)).isEqualTo(MemberStatus.SUSPECT);
      b.m(0).prepare = Mono::empty;
      b.m(0).answer =
          () -> {
            throw new IllegalStateException("probe");
          };
      b.pass(ofSeconds(2));
      assertThat(b.status(0)).isEqualTo(MemberStatus.QUARANTINED);
      b.m(0).running = 0;
    }
  }

  @Test
  @DisplayName("HE-10 a fail handle that blocks holds up neither decisions nor the engine's time")
  void blockingHandle() throws Exception {
    Scheduler scheduler = Schedulers.newParallel("health-test", 4);
    CountDownLatch release = new CountDownLatch(1);
    CountDownLatch blocked = new CountDownLatch(1);
    HealthEngine engine = HealthEngine.builder().scheduler(scheduler).build();
    try {
      HealthGroup<FakeMember> g =
          engine.group(
              "g",
              HealthPolicy.consecutiveFailures(1)
                  .cooldown(ofMillis(50))
                  .penalty(5, ofMillis(50))
                  .build());
      FakeMember a = FakeMember.named("a");
      FakeMember b = FakeMember.named("b");
      g.add(a);
      g.add(b);
      on(
          g,
          a,
          e -> {
            blocked.countDown();
            uninterruptibly(release);
          });
      on(g, a, e -> {}).failed(CONNECTION, null);
      assertThat(blocked.await(10, TimeUnit.SECONDS)).isTrue();
      // times still come, decisions are still made
      until(() -> requireNonNull(g.health("a")).status() == MemberStatus.HALF_OPEN);
      until(() -> requireNonNull(g.health("a")).penalty() == 0);
      on(g, a, e -> {}).succeeded();
      // by this thread, or by the one whose wake-up is being handled right now
      until(() -> requireNonNull(g.health("a")).status() == MemberStatus.HEALTHY);
    } finally {
      release.countDown();
      engine.close();
      scheduler.disposeGracefully().block(Duration.ofSeconds(10));
    }
  }

  @Test
  @DisplayName("HE-9 HE-10 decisions are made on the caller's thread, foreign code runs elsewhere")
  void threads() throws Exception {
    Scheduler scheduler = Schedulers.newParallel("health-test", 2);
    HealthEngine engine = HealthEngine.builder().scheduler(scheduler).build();
    try {
      HealthGroup<FakeMember> g =
          engine.group("g", HealthPolicy.consecutiveFailures(1).cooldown(ofSeconds(5)).build());
      FakeMember a = FakeMember.named("a");
      g.add(a);
      g.add(FakeMember.named("b"));
      List<String> threads = new ArrayList<>();
      CountDownLatch told = new CountDownLatch(2);
      engine
          .events()
          .subscribe(
              e -> {
                synchronized (threads) {
                  threads.add(Thread.currentThread().getName());
                }
                told.countDown();
              });
      on(
          g,
          a,
          e -> {
            synchronized (threads) {
              threads.add(Thread.currentThread().getName());
            }
            told.countDown();
          });
      on(g, a, e -> {}).failed(CONNECTION, null);
      assertThat(requireNonNull(g.health("a")).status()).isEqualTo(MemberStatus.QUARANTINED);
      assertThat(told.await(10, TimeUnit.SECONDS)).isTrue();
      assertThat(threads).hasSize(2).allSatisfy(t -> assertThat(t).startsWith("health-test"));
    } finally {
      engine.close();
      scheduler.disposeGracefully().block(Duration.ofSeconds(10));
    }
  }

  @Test
  @DisplayName("HE-9 a listener that blocks holds up no fail handle and no other listener")
  void blockingListener() throws Exception {
    Scheduler scheduler = Schedulers.newParallel("health-test", 8);
    CountDownLatch release = new CountDownLatch(1);
    HealthEngine engine = HealthEngine.builder().scheduler(scheduler).build();
    try {
      HealthGroup<FakeMember> g =
          engine.group("g", HealthPolicy.consecutiveFailures(1).cooldown(ofSeconds(5)).build());
      FakeMember a = FakeMember.named("a");
      g.add(a);
      g.add(FakeMember.named("b"));
      AtomicInteger seen = new AtomicInteger();
      CountDownLatch told = new CountDownLatch(1);
      engine
          .events()
          .subscribe(
              e -> {
                seen.incrementAndGet();
                uninterruptibly(release);
              });
      AtomicInteger others = new AtomicInteger();
      engine.events().subscribe(e -> others.incrementAndGet());
      on(g, a, e -> {}).failed(CONNECTION, null);
      until(() -> seen.get() == 1);
      on(g, a, e -> {}).succeeded();
      on(g, a, e -> told.countDown());
      on(g, a, e -> {}).failed(CONNECTION, null);
      assertThat(told.await(10, TimeUnit.SECONDS)).isTrue();
      until(() -> others.get() == 3);
      assertThat(seen).hasValue(1);
    } finally {
      release.countDown();
      engine.close();
      scheduler.disposeGracefully().block(Duration.ofSeconds(10));
    }
  }

  @Test
  @DisplayName(
      "a closed engine still counts and ends claims, tells what was decided, probes no more")
  void closed() {
    Bench b = new Bench(POLICY, 2);
    Claim<FakeMember> open = b.on(0);
    b.on(0).failed(CONNECTION, null);
    assertThat(b.m(0).running).isOne();
    b.engine.close();
    assertThat(b.m(0).running).isZero();
    assertThat(b.engine.isDisposed()).isTrue();
    b.on(1).failed(CONNECTION, null);
    b.pass(ofSeconds(60));
    assertThat(b.status(0)).isEqualTo(MemberStatus.SUSPECT);
    assertThat(b.status(1)).isEqualTo(MemberStatus.HEALTHY);
    AtomicInteger gone = new AtomicInteger();
    b.group.remove(b.m(0)).subscribe(null, null, gone::incrementAndGet);
    open.succeeded();
    assertThat(gone).hasValue(1);
    assertThat(b.picks(3)).containsOnlyKeys("m1");
    b.close();
  }

  private static void until(BooleanSupplier condition) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("gave up waiting").isLessThan(end);
      LockSupport.parkNanos(1_000_000);
    }
  }

  private static void uninterruptibly(CountDownLatch latch) {
    // busy, since BlockHound would not let a worker park
    while (latch.getCount() > 0) {}
  }
}
