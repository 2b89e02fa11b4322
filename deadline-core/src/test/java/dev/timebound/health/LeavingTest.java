package dev.timebound.health;

import static dev.timebound.health.MemberStatus.HEALTHY;
import static dev.timebound.health.MemberStatus.QUARANTINED;
import static dev.timebound.health.MemberStatus.SUSPECT;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

class LeavingTest {
  private final Bench b =
      new Bench(
          HealthPolicy.silence(ofSeconds(1))
              .confirmedByProbe(ofSeconds(1))
              .penalty(25, ofSeconds(5))
              .maxQuarantined(0.5)
              .build(),
          4);

  @AfterEach
  void nothingIsLeft() {
    b.close();
  }

  @Test
  @DisplayName("BT-5 it gets nothing new at once, keeps its open claims, and is gone with the last")
  void drains() {
    Claim<FakeMember> a = b.on(0);
    Claim<FakeMember> c = b.on(0);
    AtomicBoolean gone = new AtomicBoolean();
    Mono<Void> removed = b.group.remove(b.m(0));
    removed.subscribe(null, null, () -> gone.set(true));
    assertThat(b.picks(30)).doesNotContainKey("m0");
    assertThat(b.group.health("m0")).isNull();
    assertThat(b.group.members()).hasSize(3);
    assertThat(b.group.openClaims()).isEqualTo(2);
    a.succeeded();
    assertThat(gone).isFalse();
    assertThat(c.isEnded()).isFalse();
    c.failed(FailureKind.CONNECTION, null);
    assertThat(gone).isTrue();
    StepVerifier.create(removed).verifyComplete();
  }

  @Test
  @DisplayName("BT-5 it leaves at the call, subscribed or not, and twice is as good as once")
  void hot() {
    Claim<FakeMember> open = b.on(0);
    b.group.remove(b.m(0));
    assertThat(b.group.members()).hasSize(3);
    Mono<Void> again = b.group.remove(b.m(0));
    StepVerifier.create(again).then(open::cancelled).verifyComplete();
    StepVerifier.create(b.group.remove(b.m(0))).verifyComplete();
    StepVerifier.create(b.group.remove(FakeMember.named("stranger"))).verifyComplete();
  }

  @Test
  @DisplayName("its name is free again at once")
  void nameIsFree() {
    Claim<FakeMember> open = b.on(0);
    b.group.remove(b.m(0));
    FakeMember next = FakeMember.named("m0");
    b.group.add(next);
    assertThat(b.health(0).open()).isZero();
    assertThat(b.group.openClaims()).isOne();
    open.cancelled();
    assertThat(b.group.members()).hasSize(4);
  }

  @Test
  @DisplayName("HE-8 BT-19 one that left while probed: its open claims fail if the probe fails")
  void probeFails() {
    Claim<FakeMember> silent = b.on(0);
    silent.waiting();
    Claim<FakeMember> busy = b.on(1);
    b.passWithProgress(1300, busy);
    assertThat(b.status(0)).isEqualTo(SUSPECT);
    AtomicBoolean gone = new AtomicBoolean();
    b.group.remove(b.m(0)).subscribe(null, null, () -> gone.set(true));
    int events = b.events.size();
    b.passWithProgress(1000, busy);
    assertThat(silent.isEnded()).isTrue();
    assertThat(b.failed).hasSize(1);
    assertThat(gone).isTrue();
    assertThat(b.events).as("it is no news of the group").hasSize(events);
  }

  @Test
  @DisplayName("HE-8 BT-19 one that left while probed does not count to the cap")
  void notInTheCap() {
    Claim<FakeMember> busy = b.on(3);
    b.on(0).waiting();
    b.on(1).waiting();
    b.on(2).waiting();
    b.passWithProgress(1300, busy);
    assertThat(b.status(0)).isEqualTo(SUSPECT);
    // three of four are suspect; without these two, whose probes are still under way, one of two
    b.group.remove(b.m(1));
    b.group.remove(b.m(2));
    b.m(0).answer(ProbeAnswer.CONNECTION_FAILED);
    assertThat(b.status(0)).isEqualTo(QUARANTINED);
    assertThat(b.failed).hasSize(1);
    b.passWithProgress(1000, busy);
    assertThat(b.failed).hasSize(3);
  }

  @Test
  @DisplayName("HE-8 an answer to the probe of one that left leaves its claims alone")
  void probeAnswered() {
    Claim<FakeMember> silent = b.on(0);
    silent.waiting();
    Claim<FakeMember> busy = b.on(1);
    b.passWithProgress(1300, busy);
    b.group.remove(b.m(0));
    b.m(0).answer(ProbeAnswer.ANSWERED);
    b.passWithProgress(900, busy);
    assertThat(silent.isEnded()).isFalse();
    assertThat(b.failed).isEmpty();
  }

  @Test
  @DisplayName("HE-8 one that left stays watched: a stall later on fails its claims too")
  void stallsLater() {
    Claim<FakeMember> draining = b.on(0);
    b.group.remove(b.m(0));
    Claim<FakeMember> busy = b.on(1);
    b.passWithProgress(3000, busy);
    draining.waiting();
    b.passWithProgress(2500, busy);
    assertThat(draining.isEnded()).isTrue();
    assertThat(b.failed).hasSize(1);
    assertThat(b.changes()).isEmpty();
  }

  @Test
  @DisplayName("HE-8 the probe of one that is gone is called off")
  void calledOff() {
    Claim<FakeMember> silent = b.on(0);
    silent.waiting();
    Claim<FakeMember> busy = b.on(1);
    b.passWithProgress(1300, busy);
    b.group.remove(b.m(0));
    assertThat(b.m(0).running).isOne();
    silent.cancelled();
    assertThat(b.m(0).running).isZero();
    b.pass(5000);
    assertThat(b.group.openClaims()).isOne();
  }

  @Test
  @DisplayName("HE-8 one that left while out takes no place among those that are out")
  void leftWhileOut() {
    Claim<FakeMember> busy = b.on(3);
    b.on(0).waiting();
    b.on(1).waiting();
    b.passWithProgress(2500, busy);
    assertThat(b.status(0)).isEqualTo(QUARANTINED);
    assertThat(b.status(1)).isEqualTo(QUARANTINED);
    b.group.remove(b.m(0));
    b.group.add(FakeMember.named("new"));
    b.on(2).waiting();
    b.passWithProgress(2500, busy);
    assertThat(b.status(2)).isEqualTo(QUARANTINED);
    assertThat(b.status(3)).isEqualTo(HEALTHY);
  }
}
