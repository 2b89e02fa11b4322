package dev.timebound.health;

import static dev.timebound.health.MemberStatus.HEALTHY;
import static dev.timebound.health.MemberStatus.QUARANTINED;
import static dev.timebound.health.MemberStatus.SUSPECT;
import static java.time.Duration.ofSeconds;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.scheduler.Scheduler;
import reactor.test.scheduler.VirtualTimeScheduler;

/** The whole process stands still for a while: the clock has moved, nothing else has. */
class LatenessTest {
  /** Virtual time whose clock can jump while its tasks stay where they were. */
  private static final class Pausing implements Scheduler {
    final VirtualTimeScheduler time = VirtualTimeScheduler.create();
    long paused;

    @Override
    public long now(TimeUnit unit) {
      return time.now(unit) + unit.convert(paused, TimeUnit.NANOSECONDS);
    }

    @Override
    public Disposable schedule(Runnable task) {
      return time.schedule(task);
    }

    @Override
    public Disposable schedule(Runnable task, long delay, TimeUnit unit) {
      return time.schedule(task, delay, unit);
    }

    @Override
    public Worker createWorker() {
      return time.createWorker();
    }
  }

  private final Pausing clock = new Pausing();
  private final HealthEngine engine = HealthEngine.builder().scheduler(clock).seed(1).build();
  private final HealthGroup<FakeMember> group =
      engine.group("g", HealthPolicy.silence(ofSeconds(1)).confirmedByProbe(ofSeconds(1)).build());
  private final FakeMember a = FakeMember.named("a");
  private final FakeMember b = FakeMember.named("b");

  LatenessTest() {
    group.add(a);
    group.add(b);
  }

  @AfterEach
  void close() {
    engine.close();
  }

  private Claim<FakeMember> on(FakeMember m) {
    return requireNonNull(group.inOrder(List.of(m), e -> {}).next());
  }

  private MemberStatus status() {
    return requireNonNull(group.health("a")).status();
  }

  private void pass(long millis, Claim<?> busy) {
    for (long t = 0; t < millis; t += 50) {
      busy.progress();
      clock.time.advanceTimeBy(Duration.ofMillis(50));
    }
  }

  @Test
  @DisplayName("HE-10 a pause of the process is not taken for a member's silence")
  void pause() {
    Claim<FakeMember> busy = on(b);
    on(a).waiting();
    pass(300, busy);
    clock.paused += ofSeconds(5).toNanos();
    pass(500, busy);
    assertThat(status()).as("silent for 5.8 s on the clock, of them 5 s paused").isEqualTo(HEALTHY);
    assertThat(a.probes).isZero();
    pass(500, busy);
    assertThat(status()).as("but it is silent").isEqualTo(SUSPECT);
  }

  @Test
  @DisplayName("HE-10 pause upon pause is not taken for a member's silence either")
  void pauses() {
    Claim<FakeMember> busy = on(b);
    on(a).waiting();
    for (int i = 0; i < 4; i++) {
      pass(100, busy);
      clock.paused += ofSeconds(1).toNanos();
    }
    pass(50, busy);
    assertThat(status()).isEqualTo(HEALTHY);
  }

  @Test
  @DisplayName("HE-10 ticks that are always late put the suspicion off, and not for ever")
  void busyScheduler() {
    Claim<FakeMember> busy = on(b);
    on(a).waiting();
    for (int i = 0; i < 12; i++) {
      pass(100, busy);
      clock.paused += Duration.ofMillis(400).toNanos();
    }
    assertThat(status()).isEqualTo(SUSPECT);
  }

  @Test
  @DisplayName("HE-10 a probe whose limit was seen late counts neither way")
  void probe() {
    Claim<FakeMember> busy = on(b);
    on(a).waiting();
    pass(1300, busy);
    assertThat(status()).isEqualTo(SUSPECT);
    assertThat(a.probes).isOne();
    clock.paused += ofSeconds(3).toNanos();
    pass(1000, busy);
    assertThat(status()).isEqualTo(SUSPECT);
    pass(3000, busy);
    assertThat(status()).as("the next one is in time").isEqualTo(QUARANTINED);
  }

  @Test
  @DisplayName("HE-10 of two probes in a row that were seen late the second counts")
  void lateProbes() {
    Claim<FakeMember> busy = on(b);
    on(a).waiting();
    pass(1300, busy);
    assertThat(status()).isEqualTo(SUSPECT);
    for (int probe = 1; status() == SUSPECT && probe <= 2; probe++) {
      assertThat(a.probes).isEqualTo(probe);
      clock.paused += ofSeconds(3).toNanos();
      for (int i = 0; i < 60 && a.probes == probe && status() == SUSPECT; i++) {
        pass(50, busy);
      }
    }
    assertThat(status()).isEqualTo(QUARANTINED);
  }
}
