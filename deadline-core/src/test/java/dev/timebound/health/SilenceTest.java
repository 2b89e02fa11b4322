package dev.timebound.health;

import static dev.timebound.health.MemberStatus.HEALTHY;
import static dev.timebound.health.MemberStatus.QUARANTINED;
import static dev.timebound.health.MemberStatus.SUSPECT;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class SilenceTest {
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

  @Nested
  class Suspicion {
    @Test
    @DisplayName("BT-10 HE-3 one waiter with nothing received for the limit makes a suspect")
    void oneWaiter() {
      b.on(0).waiting();
      Claim<FakeMember> busy = b.on(1);
      b.passWithProgress(950, busy);
      assertThat(b.status(0)).as("not before the limit").isEqualTo(HEALTHY);
      assertThat(b.health(0).silence()).isBetween(Duration.ofMillis(850), Duration.ofMillis(950));
      b.passWithProgress(250, busy);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      assertThat(b.changes()).containsExactly("m0: HEALTHY -> SUSPECT SILENCE");
      assertThat(b.m(0).probes).isOne();
      assertThat(b.m(1).probes).isZero();
    }

    @Test
    @DisplayName("BT-11 a claim that does not wait never makes a suspect, whatever its silence")
    void nobodyWaits() {
      b.on(0);
      Claim<FakeMember> served = b.on(0);
      served.waiting();
      served.idle();
      Claim<FakeMember> busy = b.on(1);
      busy.waiting();
      b.passWithProgress(5000, busy);
      assertThat(b.changes()).isEmpty();
      assertThat(b.health(0).silence()).isZero();
    }

    @Test
    @DisplayName("BT-11 waits shorter than the limit never add up")
    void shortWaits() {
      Claim<FakeMember> c = b.on(0);
      Claim<FakeMember> busy = b.on(1);
      for (int i = 0; i < 10; i++) {
        c.waiting();
        b.passWithProgress(800, busy);
        c.idle();
        // asks again before any tick can see that it was idle
      }
      assertThat(b.changes()).isEmpty();
    }

    @Test
    @DisplayName("BT-10 waiting told again and again is one wait")
    void idempotent() {
      Claim<FakeMember> c = b.on(0);
      Claim<FakeMember> busy = b.on(1);
      for (int i = 0; i < 24; i++) {
        c.waiting();
        b.passWithProgress(50, busy);
      }
      assertThat(b.status(0)).isEqualTo(SUSPECT);
    }

    @Test
    @DisplayName("BT-10 what another claim of the same member receives keeps it healthy")
    void connectionReceives() {
      b.on(0).waiting();
      Claim<FakeMember> other = b.on(0);
      Claim<FakeMember> busy = b.on(1);
      b.passWithProgress(5000, other, busy);
      assertThat(b.changes()).isEmpty();
    }

    @Test
    @DisplayName("BT-10 a claim that ended waits no more")
    void ended() {
      Claim<FakeMember> c = b.on(0);
      Claim<FakeMember> busy = b.on(1);
      c.waiting();
      b.passWithProgress(800, busy);
      c.cancelled();
      c.waiting();
      b.passWithProgress(3000, busy);
      assertThat(b.changes()).isEmpty();
    }

    @Test
    @DisplayName("BT-10 a success told late is no sign that the connection receives")
    void lateSuccess() {
      b.on(0).waiting();
      Claim<FakeMember> busy = b.on(1);
      b.passWithProgress(800, busy);
      b.on(0).succeeded();
      b.passWithProgress(400, busy);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      b.on(0).succeeded();
      assertThat(b.status(0)).isEqualTo(SUSPECT);
    }

    @Test
    @DisplayName("BT-10 progress clears a suspect, and its probe is called off")
    void progressClears() {
      Claim<FakeMember> c = b.on(0);
      Claim<FakeMember> busy = b.on(1);
      c.waiting();
      b.passWithProgress(1300, busy);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      c.progress();
      b.passWithProgress(100, busy);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
      assertThat(b.m(0).cancelled).isOne();
      assertThat(b.changes()).endsWith("m0: SUSPECT -> HEALTHY PROGRESS");
      b.passWithProgress(800, busy);
      assertThat(b.status(0)).as("measured anew from the progress").isEqualTo(HEALTHY);
      b.passWithProgress(400, busy);
      assertThat(b.m(0).probes).as("and with no backing off").isEqualTo(2);
    }

    @Test
    @DisplayName("BT-4 connection failures penalise and never make a suspect where silence does")
    void failures() {
      for (int i = 0; i < 10; i++) {
        b.on(0).failed(FailureKind.CONNECTION, null);
      }
      assertThat(b.health(0).penalty()).isEqualTo(25);
      assertThat(b.changes()).isEmpty();
    }
  }

  @Nested
  class WholeGroup {
    @Test
    @DisplayName("BT-12 while no other member receives anything no one is suspect or probed")
    void allStalled() {
      for (int i = 0; i < 4; i++) {
        b.on(i).waiting();
      }
      b.pass(ofSeconds(30));
      assertThat(b.changes()).isEmpty();
      assertThat(b.members).allSatisfy(m -> assertThat(m.probes).isZero());
    }

    @Test
    @DisplayName("BT-12 what was received before the wait is no sign that others receive now")
    void oldProgress() {
      Claim<FakeMember> busy = b.on(1);
      busy.progress();
      b.pass(ofSeconds(60));
      b.on(0).waiting();
      b.pass(ofSeconds(5));
      assertThat(b.changes()).isEmpty();
    }

    @Test
    @DisplayName("BT-12 a suspect is not probed again once the whole group stalls")
    void stallsLater() {
      b.on(0).waiting();
      Claim<FakeMember> busy = b.on(1);
      b.passWithProgress(1300, busy);
      b.m(0).answer(ProbeAnswer.NOT_SENT);
      busy.waiting();
      b.pass(ofSeconds(20));
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      assertThat(b.m(0).probes).isOne();
      b.passWithProgress(200, busy);
      assertThat(b.m(0).probes).isEqualTo(2);
    }

    @Test
    @DisplayName("BT-12 one already quarantined is probed though nothing is received anywhere")
    void quarantinedIsProbed() {
      b.on(0).waiting();
      Claim<FakeMember> busy = b.on(1);
      b.passWithProgress(2400, busy);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      int probes = b.m(0).probes;
      b.pass(ofSeconds(10));
      assertThat(b.m(0).probes).isGreaterThan(probes);
    }

    @Test
    @DisplayName("BT-12 a group of one has no other to compare with")
    void alone() {
      for (int i = 1; i < 4; i++) {
        b.group.remove(b.m(i));
      }
      b.on(0).waiting();
      b.pass(ofSeconds(30));
      assertThat(b.changes()).isEmpty();
    }

    @Test
    @DisplayName("HE-8 what a member that left receives is no sign either")
    void leftReceives() {
      Claim<FakeMember> busy = b.on(1);
      b.group.remove(b.m(1));
      b.on(0).waiting();
      b.passWithProgress(3000, busy);
      assertThat(b.changes()).isEmpty();
    }
  }

  @Nested
  class Sampling {
    @Test
    @DisplayName("HE-10 nothing is scheduled while nobody waits and none is suspect")
    void quiet() {
      Claim<FakeMember> c = b.on(0);
      c.waiting();
      c.progress();
      c.idle();
      b.pass(ofSeconds(1));
      long scheduled = b.time.getScheduledTaskCount();
      c.progress();
      b.pass(Duration.ofHours(1));
      assertThat(b.time.getScheduledTaskCount()).isEqualTo(scheduled);
    }

    @Test
    @DisplayName("HE-10 measuring starts again with the next wait")
    void again() {
      Claim<FakeMember> c = b.on(0);
      Claim<FakeMember> busy = b.on(1);
      c.waiting();
      c.idle();
      b.pass(ofSeconds(10));
      c.waiting();
      b.passWithProgress(1300, busy);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
    }
  }
}
