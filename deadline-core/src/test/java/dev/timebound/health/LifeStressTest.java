package dev.timebound.health;

import static java.time.Duration.ofMillis;
import static java.time.Duration.ofMinutes;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

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
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** Whole lives at once: picks, ends, quarantines, probes, replacements, leaving, closing. */
class LifeStressTest {
  private static final int THREADS = 4;
  private static final int ROUNDS = 5000;

  /** One life, with what happened in it. */
  private static final class Life {
    final Random probes;
    final AtomicInteger names = new AtomicInteger();
    final Queue<Living> made = new ConcurrentLinkedQueue<>();
    final Queue<Request> requests = new ConcurrentLinkedQueue<>();
    final Queue<Request> open = new ConcurrentLinkedQueue<>();
    final AtomicInteger left = new AtomicInteger();
    final AtomicInteger ended = new AtomicInteger();

    Life(long seed) {
      probes = new Random(seed);
    }

    /** Whoever asks for it. */
    synchronized int dice(int sides) {
      return probes.nextInt(sides);
    }

    void leaving(Mono<Void> end) {
      left.incrementAndGet();
      end.subscribe(null, null, ended::incrementAndGet);
    }
  }

  /** Answers probes as it likes, and has replacements, or not. */
  private static final class Living implements Member {
    private final Life life;
    private final String name;
    final AtomicInteger joined = new AtomicInteger();
    final AtomicInteger discarded = new AtomicInteger();
    final AtomicInteger replaced = new AtomicInteger();

    Living(Life life) {
      this.life = life;
      this.name = "m" + life.names.incrementAndGet();
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public Mono<ProbeAnswer> probe() {
      return switch (life.dice(5)) {
        case 0 -> Mono.just(ProbeAnswer.CONNECTION_FAILED);
        case 1 -> Mono.just(ProbeAnswer.NOT_SENT);
        case 2 -> Mono.delay(ofMillis(1)).thenReturn(ProbeAnswer.ANSWERED);
        default -> Mono.just(ProbeAnswer.ANSWERED);
      };
    }

    @Override
    public Mono<Living> replacement() {
      Mono<Living> one =
          Mono.fromSupplier(
              () -> {
                Living fresh = new Living(life);
                life.made.add(fresh);
                return fresh;
              });
      return switch (life.dice(6)) {
        case 0 -> Mono.empty();
        case 1 -> Mono.error(new IllegalStateException("none to be had"));
        case 2 -> Mono.delay(ofMillis(1)).then(one);
        default -> one;
      };
    }

    @Override
    public void replaced(Member by, Mono<Void> end) {
      replaced.incrementAndGet();
      ((Living) by).joined.incrementAndGet();
      life.leaving(end);
    }

    @Override
    public void discarded() {
      discarded.incrementAndGet();
    }
  }

  /** Ended once: by its caller, or by its fail handle. */
  private static final class Request implements FailHandle {
    final AtomicInteger failed = new AtomicInteger();
    final AtomicInteger ended = new AtomicInteger();
    @Nullable Claim<Living> claim;

    @Override
    public void fail(QuarantinedException cause) {
      failed.incrementAndGet();
    }

    void end(int how) {
      Claim<Living> c = claim;
      boolean mine =
          c != null
              && switch (how) {
                case 0 -> c.succeeded();
                case 1 -> c.cancelled();
                case 2 -> c.failed(FailureKind.OVERLOAD, null);
                case 3 -> c.failed(FailureKind.ANSWER, null);
                default -> c.failed(FailureKind.CONNECTION, null);
              };
      ended.addAndGet(mine ? 1 : 0);
    }
  }

  /** Odd ones put out on suspicion, even ones by a probe. */
  private static HealthPolicy policy(long seed) {
    HealthPolicy.Builder b =
        seed % 2 == 0
            ? HealthPolicy.consecutiveFailures(1).confirmedByProbe(ofMillis(50))
            : HealthPolicy.consecutiveFailures(2).restoredByProbe(ofMillis(50));
    return b.probeInterval(ofMillis(10), ofMillis(10))
        .replaceRepeatOffenders(seed % 2 == 0 ? 1 : 2, ofMinutes(5), 0, ofMillis(1))
        .replacementLimit(ofMillis(50))
        .penalty(5, ofMillis(1))
        .slowStart(3, ofMillis(10))
        .maxQuarantined(0.5)
        .build();
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4})
  @DisplayName("HE-7 HE-8 HE-12a whatever races, claims end once, counts return to 0, none is left")
  void lives(long seed) throws Exception {
    Scheduler scheduler = Schedulers.newParallel("life-stress", 2);
    HealthEngine engine = HealthEngine.builder().scheduler(scheduler).seed(seed).build();
    HealthGroup<Living> group = engine.group("g", policy(seed));
    Life life = new Life(seed);
    for (int i = 0; i < 4; i++) {
      group.add(new Living(life));
    }
    ExecutorService pool = Executors.newFixedThreadPool(THREADS);
    try {
      CyclicBarrier start = new CyclicBarrier(THREADS);
      List<Future<?>> done = new ArrayList<>();
      for (int t = 0; t < THREADS; t++) {
        Random random = new Random(seed * 31 + t);
        done.add(
            pool.submit(
                () -> {
                  start.await();
                  run(random, group, life);
                  return null;
                }));
      }
      if (seed > 2) {
        // in the midst of it all
        until(() -> life.requests.size() > THREADS * ROUNDS / 3);
        engine.remove(group);
      }
      for (Future<?> f : done) {
        f.get(60, TimeUnit.SECONDS);
      }
    } finally {
      pool.shutdownNow();
    }
    if (seed <= 2) {
      until(() -> isReplaced(life) || fails(group, life));
    }
    life.requests.forEach(r -> r.end(1));
    engine.close();
    until(() -> life.ended.get() == life.left.get());
    until(() -> life.made.stream().allMatch(m -> m.joined.get() + m.discarded.get() == 1));
    scheduler.disposeGracefully().block(ofSeconds(20));
    assertThat(group.openClaims()).isZero();
    assertThat(group.members()).allSatisfy(m -> assertThat(m.open()).isZero());
    assertThat(life.requests)
        .allSatisfy(r -> assertThat(r.failed.get() + r.ended.get()).as("ends").isEqualTo(1));
    assertThat(life.made)
        .allSatisfy(m -> assertThat(m.joined.get() + m.discarded.get()).isEqualTo(1))
        .allSatisfy(m -> assertThat(m.replaced.get()).isLessThanOrEqualTo(1));
    assertThat(engine.decisions()).isNotEmpty();
  }

  private static boolean isReplaced(Life life) {
    return life.made.stream().anyMatch(m -> m.joined.get() == 1);
  }

  /** One more request, which fails. */
  private static boolean fails(HealthGroup<Living> group, Life life) {
    Request r = new Request();
    r.claim = group.pick(m -> false, r);
    life.requests.add(r);
    r.end(4);
    return false;
  }

  private static void run(Random random, HealthGroup<Living> group, Life life) {
    List<Living> own = new ArrayList<>();
    for (int i = 0; i < ROUNDS; i++) {
      int dice = random.nextInt(100);
      if (dice < 2) {
        Living m = new Living(life);
        own.add(m);
        group.add(m);
      } else if (dice < 4 && !own.isEmpty()) {
        life.leaving(group.remove(own.remove(own.size() - 1)));
      } else if (dice < 50) {
        Request r = new Request();
        Claim<Living> c =
            dice < 10 && !own.isEmpty()
                ? group.inOrder(own, r).next()
                : group.pick(m -> random.nextInt(10) == 0, r);
        if (c == null) {
          continue; // all of its own have left
        }
        if (random.nextBoolean()) {
          c.waiting();
        }
        r.claim = c;
        life.requests.add(r);
        life.open.add(r);
      } else {
        Request r = life.open.poll();
        if (r != null && r.claim != null) {
          r.claim.progress();
          // two threads may hold the same one: whoever is first ends it
          life.open.add(r);
          r.end(random.nextInt(9));
          life.open.remove(r);
        }
      }
    }
    own.forEach(m -> life.leaving(group.remove(m)));
  }

  /** m1 is to be replaced as soon as its replacement answers. */
  private static final class AboutTo implements AutoCloseable {
    final Bench b =
        new Bench(
            HealthPolicy.consecutiveFailures(1)
                .restoredByProbe(ofSeconds(1))
                .probeInterval(ofMillis(10), ofMillis(10))
                .replaceRepeatOffenders(1, ofMinutes(5), 2, ofMinutes(1))
                .build(),
            3);
    final FakeMember old = b.m(1);
    final FakeMember fresh = FakeMember.named("fresh");
    final Sinks.One<ProbeAnswer> answer = Sinks.one();

    AboutTo() {
      old.answers(ProbeAnswer.ANSWERED);
      fresh.answer = answer::asMono;
      old.replacement = () -> Mono.just(fresh);
      b.on(1).failed(FailureKind.CONNECTION, null);
      assertThat(fresh.running).isEqualTo(1);
      assertThat(b.status(1)).isEqualTo(MemberStatus.HEALTHY);
    }

    boolean hasFresh() {
      return b.group.health("fresh") != null;
    }

    @Override
    public void close() {
      b.close();
      assertThat(fresh.running).isZero();
    }
  }

  @Nested
  class Moments {
    private static final int TIMES = 3000;

    @Test
    @DisplayName("HE-7 a pick at the moment of the change: on the new one, or held by the old one")
    void pick() {
      try (Race race = new Race(11)) {
        for (int i = 0; i < TIMES; i++) {
          try (AboutTo a = new AboutTo()) {
            List<Claim<FakeMember>> picked = new ArrayList<>();
            race.run(
                () -> a.answer.tryEmitValue(ProbeAnswer.ANSWERED),
                () -> {
                  for (int n = 0; n < 3; n++) {
                    picked.add(a.b.pick());
                  }
                });
            assertThat(a.hasFresh()).isTrue();
            assertThat(a.b.group.health("m1")).isNull();
            boolean held = picked.stream().anyMatch(c -> c.member() == a.old);
            assertThat(a.old.ended).as("round " + i).isEqualTo(!held);
            picked.forEach(Claim::succeeded);
            assertThat(a.old.ended).isTrue();
          }
        }
      }
    }

    @Test
    @DisplayName("BT-19 the old one leaves at the moment of the change: the new one joins or goes")
    void leaves() {
      try (Race race = new Race(12)) {
        for (int i = 0; i < TIMES; i++) {
          try (AboutTo a = new AboutTo()) {
            AtomicInteger left = new AtomicInteger();
            race.run(
                () -> a.answer.tryEmitValue(ProbeAnswer.ANSWERED),
                () -> a.b.group.remove(a.old).subscribe(null, null, left::incrementAndGet));
            assertThat(left).hasValue(1);
            assertThat(a.b.group.health("m1")).isNull();
            assertThat(a.fresh.discarded).as("round " + i).isEqualTo(a.hasFresh() ? 0 : 1);
            assertThat(a.old.replacedBy).isSameAs(a.hasFresh() ? a.fresh : null);
          }
        }
      }
    }

    @Test
    @DisplayName("HE-7 the group goes at the moment of the change: the new one joins or goes")
    void closes() {
      try (Race race = new Race(13)) {
        for (int i = 0; i < TIMES; i++) {
          try (AboutTo a = new AboutTo()) {
            race.run(
                () -> a.answer.tryEmitValue(ProbeAnswer.ANSWERED),
                () -> a.b.engine.remove(a.b.group));
            assertThat(a.fresh.discarded).as("round " + i).isEqualTo(a.hasFresh() ? 0 : 1);
          }
        }
      }
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
