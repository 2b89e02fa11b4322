package dev.timebound.health;

import static dev.timebound.health.MemberStatus.HEALTHY;
import static dev.timebound.health.MemberStatus.QUARANTINED;
import static dev.timebound.health.MemberStatus.SUSPECT;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

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
      Claim<FakeMember> silent = b.on(0);
      Claim<FakeMember> busy = b.on(1);
      silent.waiting();
      b.passWithProgress(950, busy);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
      b.passWithProgress(250, busy);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      assertThat(b.m(0).probes).isOne();
    }

    @Test
    @DisplayName("BT-15 HE-4 a probe with no answer in its limit quarantines and fails open claims")
    void timedOut() {
      Claim<FakeMember> silent = b.on(0);
      Claim<FakeMember> busy = b.on(1);
      silent.waiting();
      b.passWithProgress(2400, busy);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      assertThat(silent.isEnded()).isTrue();
      assertThat(b.failed).hasSize(1);
      assertThat(b.group.openClaims()).isOne();
      assertThat(b.changes())
          .containsExactly(
              "m0: HEALTHY -> SUSPECT SILENCE", "m0: SUSPECT -> QUARANTINED PROBE_TIMED_OUT");
      assertThat(b.picks(30)).doesNotContainKey("m0");
      b.m(0).answers(ProbeAnswer.ANSWERED);
      b.pass(2500);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
    }
  }
}
