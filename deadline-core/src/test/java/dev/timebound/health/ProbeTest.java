package dev.timebound.health;

import static dev.timebound.health.MemberStatus.HEALTHY;
import static dev.timebound.health.MemberStatus.QUARANTINED;
import static dev.timebound.health.MemberStatus.SUSPECT;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

class ProbeTest {
  private final Bench b =
      new Bench(
          HealthPolicy.silence(ofSeconds(1))
              .confirmedByProbe(ofSeconds(1))
              .prepareLimit(ofSeconds(2))
              .maxQuarantined(0.5)
              .build(),
          4);
  private final Claim<FakeMember> silent = b.on(0);
  private final Claim<FakeMember> busy = b.on(1);

  @AfterEach
  void nothingIsLeft() {
    b.close();
  }

  /** To the moment at which m0 becomes suspect and is probed. */
  private void suspect() {
    silent.waiting();
    for (int i = 0; b.status(0) == HEALTHY && i < 40; i++) {
      b.passWithProgress(50, busy);
    }
    assertThat(b.status(0)).isEqualTo(SUSPECT);
  }

  @Nested
  class Failed {
    @Test
    @DisplayName("BT-13 BT-15 no answer within the limit quarantines, not before, and is cancelled")
    void timedOut() {
      suspect();
      b.passWithProgress(950, busy);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      assertThat(silent.isEnded()).isFalse();
      b.passWithProgress(50, busy);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      assertThat(b.m(0).cancelled).isOne();
      assertThat(b.changes()).endsWith("m0: SUSPECT -> QUARANTINED PROBE_TIMED_OUT");
    }

    @Test
    @DisplayName("BT-13 a connection that fails under the probe is a failed probe, at once")
    void connectionFailed() {
      b.m(0).answers(ProbeAnswer.CONNECTION_FAILED);
      silent.waiting();
      b.passWithProgress(1300, busy);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      assertThat(b.changes()).endsWith("m0: SUSPECT -> QUARANTINED PROBE_FAILED");
    }

    @Test
    @DisplayName("BT-13 so is an error, and a probe that throws")
    void error() {
      b.m(0).answer = () -> Mono.error(new IllegalStateException("reset"));
      silent.waiting();
      b.passWithProgress(1300, busy);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
    }

    @Test
    @DisplayName("BT-15 every open claim is failed, once, and the member gets no new ones")
    void claimsFail() {
      Claim<FakeMember> idle = b.on(0);
      Claim<FakeMember> ended = b.on(0);
      ended.succeeded();
      suspect();
      b.passWithProgress(1000, busy);
      assertThat(silent.isEnded()).isTrue();
      assertThat(idle.isEnded()).isTrue();
      assertThat(b.failed)
          .hasSize(2)
          .allSatisfy(
              e ->
                  assertThat(e).hasMessage("quarantine: g/m0 (a probe had no answer within PT1S)"));
      assertThat(silent.succeeded()).isFalse();
      assertThat(b.health(0).open()).isZero();
      assertThat(b.health(0).quarantines()).isOne();
      assertThat(b.picks(40)).doesNotContainKey("m0");
    }

    @Test
    @DisplayName("BT-15 a quarantine penalises nobody")
    void noPenalty() {
      try (Bench c =
          new Bench(
              HealthPolicy.silence(ofSeconds(1))
                  .confirmedByProbe(ofSeconds(1))
                  .penalty(25, ofSeconds(5))
                  .build(),
              2)) {
        c.on(0).waiting();
        c.passWithProgress(2400, c.on(1));
        assertThat(c.status(0)).isEqualTo(QUARANTINED);
        assertThat(c.health(0).penalty()).isZero();
      }
    }
  }

  @Nested
  class Answered {
    @Test
    @DisplayName("BT-13 an answer clears a suspect and touches none of its claims")
    void clears() {
      suspect();
      b.m(0).answer(ProbeAnswer.ANSWERED);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
      assertThat(silent.isEnded()).isFalse();
      assertThat(b.changes())
          .containsExactly(
              "m0: HEALTHY -> SUSPECT SILENCE", "m0: SUSPECT -> HEALTHY PROBE_ANSWERED");
    }

    @Test
    @DisplayName("BT-13 a still silent one is probed at growing intervals, up to 10 s, with jitter")
    void backsOff() {
      b.m(0).answers(ProbeAnswer.ANSWERED);
      silent.waiting();
      List<Long> at = new ArrayList<>();
      int seen = 0;
      for (long t = 0; t < 80_000; t += 50) {
        b.passWithProgress(50, busy);
        if (b.m(0).probes > seen) {
          seen = b.m(0).probes;
          at.add(t);
        }
      }
      List<Long> gaps = new ArrayList<>();
      for (int i = 1; i < at.size(); i++) {
        gaps.add(at.get(i) - at.get(i - 1));
      }
      assertThat(gaps.get(0)).isBetween(1000L, 1350L);
      assertThat(gaps.get(1)).isBetween(2000L, 2550L);
      assertThat(gaps.get(2)).isBetween(4000L, 4950L);
      assertThat(gaps.subList(4, gaps.size()))
          .hasSizeGreaterThan(3)
          .allSatisfy(g -> assertThat(g).isBetween(8000L, 10_150L));
      assertThat(Set.copyOf(gaps.subList(4, gaps.size()))).as("jitter").hasSizeGreaterThan(2);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
      assertThat(silent.isEnded()).isFalse();
    }

    @Test
    @DisplayName("BT-17 an answer restores a quarantined one at once")
    void restores() {
      suspect();
      b.passWithProgress(1000, busy);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      b.passWithProgress(500, busy);
      int asked = b.m(0).asked.size();
      assertThat(asked).isEqualTo(2);
      b.m(0).answer(ProbeAnswer.ANSWERED);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
      assertThat(b.changes()).endsWith("m0: QUARANTINED -> HEALTHY PROBE_ANSWERED");
      assertThat(b.picks(8)).containsKey("m0");
    }

    @Test
    @DisplayName("BT-17 a quarantined one is probed every second at first, then backing off")
    void probedAgain() {
      suspect();
      b.passWithProgress(1000, busy);
      List<Integer> probes = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        b.passWithProgress(10_000, busy);
        probes.add(b.m(0).probes);
      }
      // about 1, 2, 4, 8, 10, 10, 10 s
      assertThat(probes.get(0)).isBetween(4, 5);
      assertThat(probes.get(5)).isBetween(9, 11);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
    }

    @Test
    @DisplayName("BT-17 after a restore a new stall is seen as fast as the first")
    void stallsAgain() {
      suspect();
      b.passWithProgress(15_000, busy);
      b.m(0).answers(ProbeAnswer.ANSWERED);
      b.passWithProgress(11_000, busy);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
      b.m(0).answers(ProbeAnswer.CONNECTION_FAILED);
      b.on(0).waiting();
      b.passWithProgress(1300, busy);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
    }

    @Test
    @DisplayName("BT-13 an answer of a probe that was called off counts for nothing")
    void stale() {
      suspect();
      silent.progress();
      b.passWithProgress(100, busy);
      b.passWithProgress(1200, busy);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      assertThat(b.m(0).asked).hasSize(2);
      b.m(0).asked.get(0).tryEmitValue(ProbeAnswer.CONNECTION_FAILED);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
    }
  }

  @Nested
  class NotSent {
    @BeforeEach
    void noCredentials() {
      b.m(0).prepare = () -> Mono.error(new IllegalStateException("no token"));
    }

    @Test
    @DisplayName("BT-14 a failed preparation sends nothing, neither quarantines nor restores")
    void fails() {
      silent.waiting();
      b.passWithProgress(8000, busy);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      assertThat(b.m(0).probes).isZero();
      assertThat(b.m(0).prepared).isBetween(5, 7);
      b.m(0).prepare = Mono::empty;
      b.passWithProgress(2300, busy);
      assertThat(b.status(0)).as("once there is a token").isEqualTo(QUARANTINED);
      b.m(0).prepare = () -> Mono.error(new IllegalStateException("no token"));
      b.m(0).answers(ProbeAnswer.ANSWERED);
      b.passWithProgress(20_000, busy);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      b.m(0).prepare = Mono::empty;
      b.passWithProgress(10_000, busy);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
    }

    @Test
    @DisplayName("BT-14 a preparation that hangs has a bound of its own and counts neither way")
    void hangs() {
      b.m(0).prepare = Mono::never;
      silent.waiting();
      b.passWithProgress(12_000, busy);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      assertThat(b.m(0).probes).isZero();
      assertThat(b.m(0).prepared).isBetween(3, 4);
    }

    @Test
    @DisplayName("BT-14 the probe's own limit starts after its preparation")
    void limitStartsLater() {
      b.m(0).prepare = () -> Mono.delay(ofMillis(1500), b.time).then();
      suspect();
      b.passWithProgress(1450, busy);
      assertThat(b.m(0).probes).isZero();
      b.passWithProgress(950, busy);
      assertThat(b.m(0).probes).isOne();
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      b.passWithProgress(150, busy);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
    }

    @Test
    @DisplayName("BT-14 a probe that says it was not sent, or nothing, counts neither way")
    void says() {
      b.m(0).prepare = Mono::empty;
      b.m(0).answers(ProbeAnswer.NOT_SENT);
      silent.waiting();
      b.passWithProgress(3000, busy);
      b.m(0).answer = Mono::empty;
      b.passWithProgress(3000, busy);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      assertThat(b.m(0).probes).isBetween(4, 6);
    }
  }

  @Nested
  class AfterFailures {
    private final Bench f =
        new Bench(
            HealthPolicy.consecutiveFailures(3)
                .confirmedByProbe(ofSeconds(1))
                .probeInterval(ofMillis(250), ofMillis(250))
                .build(),
            2);

    @AfterEach
    void nothingIsLeft() {
      f.close();
    }

    private void fail() {
      for (int i = 0; i < 3; i++) {
        f.on(0).failed(FailureKind.CONNECTION, null);
      }
    }

    @Test
    @DisplayName("HE-3 HE-4 failures in a row are confirmed by a probe, others' progress or not")
    void confirmed() {
      fail();
      assertThat(f.status(0)).isEqualTo(SUSPECT);
      f.pass(1000);
      assertThat(f.status(0)).isEqualTo(QUARANTINED);
      f.on(0).succeeded();
      assertThat(f.status(0)).as("only a probe's answer restores").isEqualTo(QUARANTINED);
      f.m(0).answers(ProbeAnswer.ANSWERED);
      f.pass(Duration.ofMillis(1250));
      assertThat(f.status(0)).isEqualTo(HEALTHY);
    }

    @Test
    @DisplayName("HE-3 a success clears a suspect and calls its probe off")
    void cleared() {
      fail();
      f.on(0).succeeded();
      assertThat(f.status(0)).isEqualTo(HEALTHY);
      assertThat(f.m(0).running).isZero();
      f.pass(5000);
      assertThat(f.status(0)).isEqualTo(HEALTHY);
    }

    @Test
    @DisplayName("HE-4 with one interval there is no backing off")
    void steady() {
      f.m(0).answers(ProbeAnswer.CONNECTION_FAILED);
      fail();
      f.pass(10_000);
      assertThat(f.m(0).probes).isBetween(40, 50);
    }
  }
}
