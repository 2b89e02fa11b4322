package dev.timebound.health;

import static java.time.Duration.ofMillis;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

class StressTest {
  private static final int THREADS = 4;

  /** A request as an adapter would make it: ended once, by its caller or by its fail handle. */
  private static final class Request implements FailHandle {
    final AtomicInteger failed = new AtomicInteger();
    final AtomicInteger ended = new AtomicInteger();

    @Override
    public void fail(QuarantinedException cause) {
      failed.incrementAndGet();
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6})
  @DisplayName("HE-12a whatever races, each claim ends once, counts return to 0, none is left")
  void races(long seed) throws Exception {
    Scheduler scheduler = Schedulers.newParallel("health-stress", 2);
    HealthEngine engine = HealthEngine.builder().scheduler(scheduler).seed(seed).build();
    HealthGroup<FakeMember> g =
        engine.group(
            "g",
            HealthPolicy.consecutiveFailures(2)
                .cooldown(ofMillis(1))
                .penalty(5, ofMillis(1))
                .build());
    for (int i = 0; i < 4; i++) {
      g.add(FakeMember.named("m" + i));
    }
    Queue<Request> requests = new ConcurrentLinkedQueue<>();
    Queue<Claim<FakeMember>> shared = new ConcurrentLinkedQueue<>();
    AtomicInteger removed = new AtomicInteger();
    AtomicInteger left = new AtomicInteger();
    ExecutorService pool = Executors.newFixedThreadPool(THREADS);
    try {
      CyclicBarrier start = new CyclicBarrier(THREADS);
      List<Future<?>> done = new ArrayList<>();
      for (int t = 0; t < THREADS; t++) {
        Random random = new Random(seed * 31 + t);
        int thread = t;
        done.add(
            pool.submit(
                () -> {
                  start.await();
                  run(random, thread, g, requests, shared, removed, left);
                  return null;
                }));
      }
      for (Future<?> f : done) {
        f.get(60, TimeUnit.SECONDS);
      }
    } finally {
      pool.shutdownNow();
    }
    for (Claim<FakeMember> c : shared) {
      c.cancelled();
    }
    until(() -> left.get() == removed.get());
    engine.close();
    scheduler.disposeGracefully().block(Duration.ofSeconds(20));
    assertThat(g.openClaims()).isZero();
    assertThat(g.members()).allSatisfy(m -> assertThat(m.open()).isZero());
    assertThat(requests)
        .allSatisfy(
            r -> assertThat(r.failed.get() + r.ended.get()).as("ends of a request").isEqualTo(1));
    assertThat(requests.stream().filter(r -> r.failed.get() == 1)).as("quarantined").isNotEmpty();
    assertThat(removed.get()).isPositive();
  }

  private static void run(
      Random random,
      int thread,
      HealthGroup<FakeMember> g,
      Queue<Request> requests,
      Queue<Claim<FakeMember>> shared,
      AtomicInteger removed,
      AtomicInteger left) {
    List<FakeMember> own = new ArrayList<>();
    for (int i = 0; i < 4000; i++) {
      int dice = random.nextInt(100);
      if (dice < 2) {
        FakeMember m = FakeMember.named("t" + thread + "-" + i);
        own.add(m);
        g.add(m);
      } else if (dice < 4 && !own.isEmpty()) {
        removed.incrementAndGet();
        g.remove(own.remove(own.size() - 1)).subscribe(null, null, left::incrementAndGet);
      } else if (dice < 50) {
        Request r = new Request();
        requests.add(r);
        Claim<FakeMember> c = g.pick(m -> random.nextInt(10) == 0, r);
        assertThat(c).isNotNull();
        shared.add(new Counted(c, r));
      } else {
        Claim<FakeMember> c = shared.poll();
        if (c != null) {
          // two threads may hold the same claim: whoever is first ends it
          shared.add(c);
          int end = random.nextInt(8);
          if (end == 0) {
            c.succeeded();
          } else if (end == 1) {
            c.cancelled();
          } else if (end == 2) {
            c.failed(FailureKind.OVERLOAD, null);
          } else {
            c.failed(FailureKind.CONNECTION, null);
          }
          shared.remove(c);
        }
      }
    }
    while (!own.isEmpty()) {
      removed.incrementAndGet();
      g.remove(own.remove(own.size() - 1)).subscribe(null, null, left::incrementAndGet);
    }
  }

  /** Counts which end was the one. */
  private record Counted(Claim<FakeMember> claim, Request request) implements Claim<FakeMember> {
    private boolean counted(boolean won) {
      if (won) {
        request.ended.incrementAndGet();
      }
      return won;
    }

    @Override
    public FakeMember member() {
      return claim.member();
    }

    @Override
    public void waiting() {
      claim.waiting();
    }

    @Override
    public void idle() {
      claim.idle();
    }

    @Override
    public void progress() {
      claim.progress();
    }

    @Override
    public boolean succeeded() {
      return counted(claim.succeeded());
    }

    @Override
    public boolean failed(FailureKind kind, @Nullable Throwable cause) {
      return counted(claim.failed(kind, cause));
    }

    @Override
    public boolean cancelled() {
      return counted(claim.cancelled());
    }

    @Override
    public boolean isEnded() {
      return claim.isEnded();
    }

    @Override
    public boolean isTrial() {
      return claim.isTrial();
    }
  }

  @Test
  @DisplayName("BT-15 HE-12a a claim that registers while its member goes out is failed or moved")
  void registersAtThatMoment() {
    try (Race race = new Race(5)) {
      for (int round = 0; round < 5000; round++) {
        try (Bench b =
            new Bench(
                HealthPolicy.consecutiveFailures(1).cooldown(Duration.ofHours(1)).build(), 2)) {
          Claim<FakeMember> failing = b.on(0);
          b.on(1);
          b.on(1);
          AtomicReference<@Nullable Claim<FakeMember>> picked = new AtomicReference<>();
          race.run(
              () -> failing.failed(FailureKind.CONNECTION, null),
              () -> picked.set(b.group.pick(m -> false, b.failed::add)));
          Claim<FakeMember> claim = b.kept(picked.get());
          assertThat(b.status(0)).isEqualTo(MemberStatus.QUARANTINED);
          if (claim.member() == b.m(0)) {
            assertThat(claim.isEnded()).as("left behind in round " + round).isTrue();
            assertThat(b.failed).hasSize(1);
          } else {
            assertThat(claim.isEnded()).isFalse();
          }
          assertThat(b.health(0).open()).isZero();
        }
      }
    }
  }

  @Test
  @DisplayName("BT-5 a claim that registers while its member leaves holds the leaving, or moves")
  void registersWhileLeaving() {
    try (Race race = new Race(5)) {
      for (int round = 0; round < 5000; round++) {
        try (Bench b = new Bench(HealthPolicy.loadOnly().build(), 2)) {
          b.on(1);
          b.on(1);
          AtomicBoolean gone = new AtomicBoolean();
          AtomicReference<@Nullable Claim<FakeMember>> picked = new AtomicReference<>();
          race.run(
              () -> b.group.remove(b.m(0)).subscribe(null, null, () -> gone.set(true)),
              () -> picked.set(b.group.pick(m -> false, null)));
          Claim<FakeMember> claim = b.kept(picked.get());
          assertThat(gone.get())
              .as("left for good, in round " + round)
              .isEqualTo(claim.member() != b.m(0));
          claim.succeeded();
          assertThat(gone).isTrue();
        }
      }
    }
  }

  @Test
  @DisplayName("HE-12a of two callers at once one gets the trial")
  void oneTrial() {
    try (Race race = new Race(6)) {
      List<Slot<FakeMember>> slots = new ArrayList<>();
      for (int i = 0; i < 10_000; i++) {
        slots.add(new Slot<>(i, FakeMember.named("m"), "m"));
      }
      chase(
          race,
          60,
          () -> slots.forEach(s -> s.trial = Slot.TRIAL_FREE),
          slots,
          Slot::load,
          Slot::takeTrial,
          Slot::takeTrial);
    }
  }

  @Test
  @DisplayName("HE-12a of two ends at once one ends the claim")
  void oneEnd() {
    try (Race race = new Race(7);
        Bench b = new Bench(HealthPolicy.loadOnly().build(), 1)) {
      List<Claim<FakeMember>> claims = new ArrayList<>();
      chase(
          race,
          60,
          () -> {
            claims.clear();
            for (int i = 0; i < 10_000; i++) {
              claims.add(requireNonNull(b.group.pick(m -> false, null)));
            }
          },
          claims,
          Claim::isEnded,
          Claim::succeeded,
          Claim::cancelled);
      assertThat(b.health(0).open()).isZero();
    }
  }

  /** Two threads go along the same things in lockstep. */
  private static <T> void chase(
      Race race,
      int rounds,
      Runnable before,
      List<T> things,
      Consumer<T> look,
      Predicate<T> mine,
      Predicate<T> theirs) {
    for (int round = 0; round < rounds; round++) {
      before.run();
      int[] won = new int[2];
      race.lockstep(
          things.size(),
          i -> look.accept(things.get(i)),
          i -> won[0] += mine.test(things.get(i)) ? 1 : 0,
          i -> won[1] += theirs.test(things.get(i)) ? 1 : 0);
      assertThat(won[0] + won[1]).as("each won once, in round " + round).isEqualTo(things.size());
    }
  }

  private static void until(BooleanSupplier condition) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("gave up waiting").isLessThan(end);
      LockSupport.parkNanos(1_000_000);
    }
  }
}
