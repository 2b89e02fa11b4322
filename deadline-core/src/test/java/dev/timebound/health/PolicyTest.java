package dev.timebound.health;

import static java.time.Duration.ZERO;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.test.scheduler.VirtualTimeScheduler;

class PolicyTest {
  @Test
  @DisplayName("every setting is refused at once, by name, value and expectation")
  void refusals() {
    HealthPolicy.Builder b = HealthPolicy.silence(ofSeconds(1));
    refused(() -> HealthPolicy.silence(ofMillis(9)), "silence: PT0.009S (expected: >= PT0.01S)");
    refused(() -> HealthPolicy.consecutiveFailures(0), "consecutiveFailures: 0 (expected: >= 1)");
    refused(() -> b.confirmedByProbe(ZERO), "confirmedByProbe: PT0S (expected: > 0)");
    refused(
        () -> b.probeInterval(ZERO, ofSeconds(1)),
        "probeInterval.first: PT0S (expected: >= PT0.01S)");
    refused(
        () -> b.probeInterval(ofSeconds(2), ofSeconds(1)),
        "probeInterval.max: PT1S (expected: >= PT2S)");
    refused(() -> b.restoredByProbe(ZERO), "restoredByProbe: PT0S (expected: > 0)");
    refused(() -> b.prepareLimit(ZERO), "prepareLimit: PT0S (expected: > 0)");
    refused(() -> b.cooldown(ofMillis(-1)), "cooldown: PT-0.001S (expected: > 0)");
    refused(() -> b.penalty(-1, ofSeconds(1)), "penalty.weight: -1 (expected: >= 0)");
    refused(() -> b.penalty(1, ZERO), "penalty.time: PT0S (expected: > 0)");
    refused(() -> b.maxQuarantined(1.01), "maxQuarantined: 1.01 (expected: 0 .. 1)");
    refused(() -> b.maxQuarantined(-0.1), "maxQuarantined: -0.1 (expected: 0 .. 1)");
    refused(() -> b.maxQuarantined(Double.NaN), "maxQuarantined: NaN (expected: 0 .. 1)");
  }

  @Test
  @DisplayName("HE-4 a suspicion has one confirmation, and none has nothing to confirm")
  void confirmation() {
    refused(
        () -> HealthPolicy.silence(ofSeconds(1)).build(),
        "confirmation: none (expected: confirmedByProbe, restoredByProbe or cooldown)");
    refused(
        () ->
            HealthPolicy.consecutiveFailures(3)
                .confirmedByProbe(ofSeconds(1))
                .cooldown(ofSeconds(5))
                .build(),
        "cooldown: PT5S (expected: not together with confirmedByProbe)");
    refused(
        () -> HealthPolicy.loadOnly().cooldown(ofSeconds(5)).build(),
        "cooldown: PT5S (expected: not with loadOnly)");
    refused(
        () ->
            HealthPolicy.consecutiveFailures(3)
                .restoredByProbe(ofSeconds(1))
                .cooldown(ofSeconds(5))
                .build(),
        "cooldown: PT5S (expected: not together with restoredByProbe)");
    refused(
        () -> HealthPolicy.loadOnly().restoredByProbe(ofSeconds(5)).build(),
        "restoredByProbe: PT5S (expected: not with loadOnly)");
    refused(
        () -> HealthPolicy.loadOnly().confirmedByProbe(ofSeconds(5)).build(),
        "confirmedByProbe: PT5S (expected: not with loadOnly)");
  }

  @Test
  @DisplayName("times of any length are taken, and the probe still goes out")
  void longTimes() {
    Duration forEver = Duration.ofSeconds(Long.MAX_VALUE);
    AtomicInteger probes = new AtomicInteger();
    Member member =
        new Member() {
          @Override
          public String name() {
            return "m";
          }

          @Override
          public Mono<ProbeAnswer> probe() {
            probes.incrementAndGet();
            return Mono.never();
          }
        };
    VirtualTimeScheduler time = VirtualTimeScheduler.create();
    try (HealthEngine engine = HealthEngine.builder().scheduler(time).build()) {
      HealthGroup<Member> group =
          engine.group(
              "g",
              HealthPolicy.consecutiveFailures(1)
                  .confirmedByProbe(forEver)
                  .prepareLimit(forEver)
                  .probeInterval(forEver, forEver)
                  .penalty(1, forEver)
                  .build());
      group.add(member);
      Objects.requireNonNull(group.pick(m -> false, null)).failed(FailureKind.CONNECTION, null);
      time.advanceTimeBy(ofSeconds(1));
      assertThat(probes).hasValue(1);
    }
    time.dispose();
  }

  @Test
  @DisplayName("HE-6 the share of a group is rounded down")
  void cap() {
    HealthPolicy half = HealthPolicy.loadOnly().maxQuarantined(0.5).build();
    assertThat(half.cap(1)).isZero();
    assertThat(half.cap(2)).isEqualTo(1);
    assertThat(half.cap(3)).isEqualTo(1);
    assertThat(half.cap(4)).isEqualTo(2);
    assertThat(HealthPolicy.loadOnly().maxQuarantined(0.29).build().cap(100)).isEqualTo(29);
    assertThat(HealthPolicy.loadOnly().build().cap(7)).isEqualTo(7);
    assertThat(HealthPolicy.loadOnly().maxQuarantined(0).build().cap(7)).isZero();
  }

  @Test
  @DisplayName("a duration beyond the clock's range is as good as for ever")
  void huge() {
    long most = Clock.nanos(ofSeconds(Long.MAX_VALUE));
    assertThat(most).isPositive();
    assertThat(most + most).isPositive();
  }

  @Test
  @DisplayName("names of groups and members are refused where blank or taken")
  void names() {
    HealthEngine engine = HealthEngine.builder().build();
    HealthPolicy policy = HealthPolicy.loadOnly().build();
    HealthGroup<FakeMember> g = engine.group("g", policy);
    g.add(FakeMember.named("m"));
    refused(
        () -> engine.group("g", policy),
        "group: g (expected: not yet in this engine; a second pool needs a name of its own)");
    refused(() -> engine.group(" ", policy), "group: ' ' (expected: not blank)");
    refused(() -> g.add(FakeMember.named("m")), "member: m (expected: not yet in group g)");
    refused(() -> g.add(FakeMember.named("")), "member: '' (expected: not blank)");
    assertThat(engine.groups()).singleElement().isSameAs(g);
    assertThat(g.pick(m -> false, null)).hasToString("claim on m, open");
    assertThat(engine).hasToString("HealthEngine[g{healthy=1, open=1}]");
    engine.close();
    assertThatThrownBy(() -> engine.group("h", policy)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  @DisplayName("HE-1 a group that is made as the engine closes is refused, and leaves no worker")
  void madeAsItCloses() {
    HealthPolicy policy = HealthPolicy.loadOnly().build();
    List<Function<HealthEngine, Object>> groups =
        List.of(e -> e.group("g", policy), e -> e.keyed("k", ofSeconds(1), 1));
    for (Function<HealthEngine, Object> made : groups) {
      VirtualTimeScheduler time = VirtualTimeScheduler.create();
      List<Scheduler.Worker> workers = new ArrayList<>();
      List<HealthEngine> engine = new ArrayList<>();
      Scheduler closing =
          new Scheduler() {
            @Override
            public Worker createWorker() {
              engine.get(0).close();
              workers.add(time.createWorker());
              return workers.get(workers.size() - 1);
            }

            @Override
            public Disposable schedule(Runnable task) {
              return time.schedule(task);
            }
          };
      engine.add(HealthEngine.builder().scheduler(closing).build());
      assertThatThrownBy(() -> made.apply(engine.get(0))).isInstanceOf(IllegalStateException.class);
      time.advanceTime();
      assertThat(engine.get(0).groups()).isEmpty();
      assertThat(engine.get(0).keyedGroups()).isEmpty();
      assertThat(workers).isNotEmpty().allMatch(Disposable::isDisposed);
      time.dispose();
    }
  }

  @Test
  @DisplayName("a null setting is refused by its name")
  @SuppressWarnings("NullAway")
  void nulls() {
    assertThatNullPointerException()
        .isThrownBy(() -> HealthPolicy.silence(null))
        .withMessage("silence");
    assertThatNullPointerException()
        .isThrownBy(() -> HealthPolicy.consecutiveFailures(1).cooldown(null))
        .withMessage("cooldown");
    assertThatNullPointerException()
        .isThrownBy(() -> HealthEngine.builder().scheduler(null))
        .withMessage("scheduler");
    assertThatNullPointerException()
        .isThrownBy(() -> HealthEngine.builder().meters(null))
        .withMessage("meters");
  }

  private static void refused(ThrowingCallable call, String message) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }
}
