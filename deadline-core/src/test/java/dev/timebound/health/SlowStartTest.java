package dev.timebound.health;

import static dev.timebound.health.FailureKind.CONNECTION;
import static dev.timebound.health.FailureKind.OVERLOAD;
import static dev.timebound.health.ProbeAnswer.ANSWERED;
import static dev.timebound.health.ProbeAnswer.CONNECTION_FAILED;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofMinutes;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class SlowStartTest {

  private static HealthPolicy.Builder restored() {
    return HealthPolicy.consecutiveFailures(1)
        .restoredByProbe(ofSeconds(1))
        .probeInterval(ofMillis(250), ofMillis(250));
  }

  private static void outAndBack(Bench b, int i) {
    b.m(i).answers(ANSWERED);
    b.on(i).failed(CONNECTION, null);
    assertThat(b.status(i)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Nested
  class Steps {
    @Test
    @DisplayName("HE-12 one that returns carries an extra load that goes down to 0 in steps")
    void decays() {
      try (Bench b = new Bench(restored().slowStart(25, ofSeconds(5)).build(), 3)) {
        outAndBack(b, 0);
        List<Integer> loads = new ArrayList<>();
        for (int i = 0; i <= 10; i++) {
          loads.add(b.health(0).penalty());
          b.pass(500);
        }
        assertThat(loads).containsExactly(25, 23, 20, 18, 15, 13, 10, 8, 5, 3, 0);
      }
    }

    @Test
    @DisplayName("HE-12 its share of the requests grows with it")
    void share() {
      try (Bench b = new Bench(restored().slowStart(10, ofSeconds(5)).build(), 3)) {
        outAndBack(b, 0);
        assertThat(b.picks(20)).doesNotContainKey("m0");
        b.pass(ofSeconds(3));
        assertThat(b.health(0).penalty()).isEqualTo(4);
        // all on one level: (20 + 4) / 3
        assertThat(b.picks(20)).containsEntry("m0", 4).containsEntry("m1", 8);
        b.pass(ofSeconds(2));
        assertThat(b.picks(21)).containsEntry("m0", 7);
      }
    }

    @Test
    @DisplayName("HE-12 a weight below ten has as many steps")
    void few() {
      try (Bench b = new Bench(restored().slowStart(2, ofSeconds(4)).build(), 3)) {
        outAndBack(b, 0);
        b.pass(1999);
        assertThat(b.health(0).penalty()).isEqualTo(2);
        b.pass(1);
        assertThat(b.health(0).penalty()).isEqualTo(1);
        b.pass(2000);
        assertThat(b.health(0).penalty()).isZero();
      }
    }

    @Test
    @DisplayName("HE-12 a penalty comes on top, and each ends for itself")
    void penalty() {
      HealthPolicy policy = restored().slowStart(10, ofSeconds(5)).penalty(7, ofSeconds(1)).build();
      try (Bench b = new Bench(policy, 3)) {
        outAndBack(b, 0);
        b.pass(ofSeconds(2));
        assertThat(b.health(0).penalty()).isEqualTo(6);
        b.on(0).failed(OVERLOAD, null);
        assertThat(b.health(0).penalty()).isEqualTo(13);
        b.pass(ofSeconds(1));
        assertThat(b.health(0).penalty()).isEqualTo(4);
      }
    }

    @Test
    @DisplayName("HE-12 one that goes out meanwhile begins anew")
    void again() {
      try (Bench b = new Bench(restored().slowStart(10, ofSeconds(5)).build(), 3)) {
        outAndBack(b, 0);
        b.pass(ofSeconds(3));
        outAndBack(b, 0);
        assertThat(b.health(0).penalty()).isEqualTo(10);
      }
    }

    @Test
    @DisplayName("HE-12 after a cooldown the trial that succeeds begins it")
    void trial() {
      HealthPolicy policy =
          HealthPolicy.consecutiveFailures(1)
              .cooldown(ofSeconds(5))
              .slowStart(10, ofSeconds(5))
              .build();
      try (Bench b = new Bench(policy, 3)) {
        b.on(0).failed(CONNECTION, null);
        b.pass(ofSeconds(5));
        assertThat(b.health(0).penalty()).isZero();
        b.pick().succeeded();
        assertThat(b.status(0)).isEqualTo(MemberStatus.HEALTHY);
        assertThat(b.health(0).penalty()).isEqualTo(10);
      }
    }

    @Test
    @DisplayName("HE-12 PG-30 off by default: one that returns takes all of its load at once")
    void off() {
      try (Bench b = new Bench(restored().build(), 3)) {
        outAndBack(b, 0);
        assertThat(b.health(0).penalty()).isZero();
        assertThat(b.picks(21)).containsEntry("m0", 7);
      }
    }

    @Test
    @DisplayName("HE-10 HE-12 a timer a step, and none after the last")
    void timers() {
      try (Bench b = new Bench(restored().slowStart(10, ofSeconds(5)).build(), 3)) {
        outAndBack(b, 0);
        long before = b.time.getScheduledTaskCount();
        b.pass(ofMinutes(60));
        assertThat(b.time.getScheduledTaskCount() - before).isLessThanOrEqualTo(10);
      }
    }

    @Test
    @DisplayName("HE-12 values are checked where they are set")
    void refused() {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> restored().slowStart(-1, ofSeconds(5)))
          .withMessage("slowStart.weight: -1 (expected: >= 0)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> restored().slowStart(1, ofMillis(9)))
          .withMessage("slowStart.time: PT0.009S (expected: >= PT0.01S)");
      try (Bench b = new Bench(restored().slowStart(0, ofSeconds(5)).build(), 3)) {
        outAndBack(b, 0);
        assertThat(b.health(0).penalty()).isZero();
      }
    }
  }

  @Nested
  class Backing {
    private static final long TENTH = 100;

    /** Quarantined by a probe that failed; how long until it is probed again, in tenths. */
    private long nextProbe(Bench b) {
      b.m(0).answers(CONNECTION_FAILED);
      b.on(0).failed(CONNECTION, null);
      assertThat(b.status(0)).isEqualTo(MemberStatus.QUARANTINED);
      int probes = b.m(0).probes;
      long tenths = 0;
      for (; b.m(0).probes == probes; tenths++) {
        b.pass(TENTH);
      }
      return tenths;
    }

    /** The next probe is answered. */
    private void back(Bench b) {
      b.m(0).answers(ANSWERED);
      b.pass(ofSeconds(10));
      assertThat(b.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName(
        "HE-12 the probes of one that goes out again and again back off, up to the ceiling")
    void repeated() {
      HealthPolicy policy =
          HealthPolicy.consecutiveFailures(1).confirmedByProbe(ofSeconds(1)).build();
      try (Bench b = new Bench(policy, 3)) {
        assertThat(nextProbe(b)).isBetween(10L, 12L);
        back(b);
        assertThat(nextProbe(b)).isBetween(20L, 24L);
        back(b);
        assertThat(nextProbe(b)).isBetween(40L, 48L);
        back(b);
        assertThat(nextProbe(b)).isBetween(80L, 96L);
        back(b);
        for (int i = 0; i < 5; i++) {
          assertThat(nextProbe(b)).isBetween(80L, 100L);
          back(b);
        }
        b.pass(ofMinutes(5));
        assertThat(nextProbe(b)).as("forgotten").isBetween(10L, 12L);
      }
    }

    @Test
    @DisplayName("HE-12 an answer restores at once all the same")
    void answer() {
      HealthPolicy policy =
          HealthPolicy.consecutiveFailures(1).confirmedByProbe(ofSeconds(1)).build();
      try (Bench b = new Bench(policy, 3)) {
        nextProbe(b);
        back(b);
        nextProbe(b);
        back(b);
        b.m(0).answers(CONNECTION_FAILED);
        b.on(0).failed(CONNECTION, null);
        b.m(0).answers(ANSWERED);
        b.pass(4800);
        assertThat(b.status(0)).isEqualTo(MemberStatus.HEALTHY);
      }
    }

    @Test
    @DisplayName("PG-30 one interval: no backing off, however often it goes out")
    void constant() {
      HealthPolicy policy =
          HealthPolicy.consecutiveFailures(1)
              .confirmedByProbe(ofSeconds(1))
              .probeInterval(ofSeconds(1), ofSeconds(1))
              .build();
      try (Bench b = new Bench(policy, 3)) {
        for (int i = 0; i < 5; i++) {
          assertThat(nextProbe(b)).isBetween(8L, 10L);
          back(b);
        }
      }
    }
  }
}
