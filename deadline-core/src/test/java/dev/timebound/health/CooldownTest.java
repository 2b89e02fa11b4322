package dev.timebound.health;

import static dev.timebound.health.FailureKind.ANSWER;
import static dev.timebound.health.FailureKind.CONNECTION;
import static dev.timebound.health.FailureKind.OVERLOAD;
import static dev.timebound.health.MemberStatus.HALF_OPEN;
import static dev.timebound.health.MemberStatus.HEALTHY;
import static dev.timebound.health.MemberStatus.QUARANTINED;
import static dev.timebound.health.MemberStatus.SUSPECT;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class CooldownTest {
  private final Bench b =
      new Bench(
          HealthPolicy.consecutiveFailures(3)
              .cooldown(ofSeconds(5))
              .penalty(10, ofSeconds(1))
              .build(),
          3);

  @AfterEach
  void nothingIsLeft() {
    b.close();
  }

  private void fail(int member, int times) {
    for (int i = 0; i < times; i++) {
      b.on(member).failed(CONNECTION, null);
    }
  }

  @Nested
  class Suspicion {
    @Test
    @DisplayName("HE-3 HE-4 three connection failures in a row put it out at once, two do not")
    void threeInARow() {
      fail(0, 2);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
      fail(0, 1);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      assertThat(b.changes()).containsExactly("m0: HEALTHY -> QUARANTINED FAILURES");
      assertThat(b.events.get(0).figure()).startsWith("3 connection failures in a row");
      assertThat(b.picks(20)).doesNotContainKey("m0");
    }

    @Test
    @DisplayName("HE-3 any success, and any answer, starts the count anew")
    void reset() {
      fail(0, 2);
      b.on(0).succeeded();
      fail(0, 2);
      b.on(0).failed(ANSWER, null);
      fail(0, 2);
      b.on(0).failed(OVERLOAD, null);
      fail(0, 2);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
    }

    @Test
    @DisplayName("HE-2a overload and answers never make a suspect")
    void others() {
      for (int i = 0; i < 10; i++) {
        b.on(0).failed(OVERLOAD, null);
        b.on(1).failed(ANSWER, null);
      }
      assertThat(b.changes()).isEmpty();
    }

    @Test
    @DisplayName("HE-11 a cancel neither counts nor resets")
    void cancel() {
      fail(0, 2);
      for (int i = 0; i < 5; i++) {
        b.on(0).cancelled();
      }
      assertThat(b.status(0)).isEqualTo(HEALTHY);
      fail(0, 1);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
    }

    @Test
    @DisplayName("HE-6 with no cap all may go out, and the first choice is given all the same")
    void allOut() {
      fail(0, 3);
      fail(1, 3);
      fail(2, 3);
      assertThat(b.group.members()).extracting(MemberHealth::status).containsOnly(QUARANTINED);
      assertThat(b.picks(6)).hasSize(3);
      assertThat(b.kept(b.group.inOrder(List.of(b.m(1), b.m(0)), null).next()).member())
          .isSameAs(b.m(1));
    }
  }

  @Nested
  class Quarantine {
    @Test
    @DisplayName("BT-15 open claims with a fail handle end, those without run on and still count")
    void openClaims() {
      Claim<FakeMember> handled = b.on(0);
      Claim<FakeMember> runsOn = b.kept(b.group.inOrder(List.of(b.m(0)), null).next());
      fail(0, 3);
      assertThat(handled.isEnded()).isTrue();
      assertThat(b.failed)
          .singleElement()
          .satisfies(
              e ->
                  assertThat(e)
                      .hasMessageStartingWith("quarantine: g/m0 (3 connection failures in a row"));
      assertThat(runsOn.isEnded()).isFalse();
      assertThat(b.health(0).open()).isEqualTo(1);
      runsOn.succeeded();
      assertThat(b.status(0)).as("any success").isEqualTo(HEALTHY);
      assertThat(b.changes()).contains("m0: QUARANTINED -> HEALTHY SUCCESS");
    }

    @Test
    @DisplayName("HE-4 the cooldown runs from the last failure as a first choice")
    void restarts() {
      Claim<FakeMember> old = b.kept(b.group.inOrder(List.of(b.m(0)), null).next());
      fail(0, 3);
      b.pass(3000);
      old.failed(CONNECTION, null);
      b.pass(4999);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      b.pass(1);
      assertThat(b.status(0)).isEqualTo(HALF_OPEN);
    }

    @Test
    @DisplayName("HE-4 a failure as a later candidate does not put the trial off")
    void laterCandidate() {
      fail(0, 3);
      b.pass(3000);
      Candidates<FakeMember> route = b.group.inOrder(List.of(b.m(1), b.m(0)), null);
      b.kept(route.next()).failed(CONNECTION, null);
      Claim<FakeMember> later = b.kept(route.next());
      assertThat(later.member()).isSameAs(b.m(0));
      later.failed(CONNECTION, null);
      b.pass(2000);
      assertThat(b.status(0)).isEqualTo(HALF_OPEN);
    }

    @Test
    @DisplayName("HE-4 nor does its retry, which is no trial")
    void retryOfALaterCandidate() {
      fail(0, 3);
      b.pass(3000);
      Candidates<FakeMember> route = b.group.inOrder(List.of(b.m(1), b.m(0)), null);
      b.kept(route.next()).failed(CONNECTION, null);
      b.kept(route.next()).failed(CONNECTION, null);
      b.kept(route.again(b.m(0))).failed(CONNECTION, null);
      b.pass(2000);
      assertThat(b.status(0)).isEqualTo(HALF_OPEN);
      Claim<FakeMember> late = b.kept(route.again(b.m(0)));
      assertThat(late.isTrial()).isFalse();
      late.cancelled();
    }

    @Test
    @DisplayName("HE-4 a retry of the first choice counts as one")
    void retryOfTheFirst() {
      Candidates<FakeMember> route = b.group.inOrder(List.of(b.m(0), b.m(1)), null);
      b.kept(route.next()).failed(CONNECTION, null);
      b.kept(route.again(b.m(0))).failed(CONNECTION, null);
      b.kept(route.again(b.m(0))).failed(CONNECTION, null);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      b.pass(3000);
      b.kept(route.again(b.m(0))).failed(CONNECTION, null);
      b.pass(4999);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
    }
  }

  @Nested
  class Trial {
    @BeforeEach
    void halfOpen() {
      fail(0, 3);
      b.pass(5000);
      assertThat(b.status(0)).isEqualTo(HALF_OPEN);
    }

    @Test
    @DisplayName("HE-12a the trial is given to one caller only, by pick")
    void onePick() {
      Claim<FakeMember> trial = b.pick();
      assertThat(trial.member()).isSameAs(b.m(0));
      assertThat(trial.isTrial()).isTrue();
      assertThat(b.picks(20)).doesNotContainKey("m0");
    }

    @Test
    @DisplayName("HE-12a the trial is given to one caller only, in order")
    void oneInOrder() {
      List<FakeMember> order = List.of(b.m(0), b.m(1));
      assertThat(b.kept(b.group.inOrder(order, null).next()).member()).isSameAs(b.m(0));
      assertThat(b.kept(b.group.inOrder(order, null).next()).member()).isSameAs(b.m(1));
    }

    @Test
    @DisplayName("HE-5 one that is excluded gets no trial")
    void excluded() {
      Claim<FakeMember> c = b.kept(b.group.pick(m -> m == b.m(0), null));
      assertThat(c.member()).isNotSameAs(b.m(0));
    }

    @Test
    @DisplayName("HE-4 a trial that succeeds brings it back")
    void succeeds() {
      b.pick().succeeded();
      assertThat(b.status(0)).isEqualTo(HEALTHY);
      assertThat(b.changes()).endsWith("m0: HALF_OPEN -> HEALTHY TRIAL_SUCCEEDED");
      fail(0, 2);
      assertThat(b.status(0)).as("the count began anew").isEqualTo(HEALTHY);
    }

    @Test
    @DisplayName("HE-4 HE-2a a trial that got an answer brings it back")
    void answered() {
      b.pick().failed(ANSWER, null);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
      assertThat(b.health(0).penalty()).isZero();
    }

    @Test
    @DisplayName("HE-4 HE-2a a trial that met overload brings it back, penalised")
    void overloaded() {
      b.pick().failed(OVERLOAD, null);
      assertThat(b.status(0)).isEqualTo(HEALTHY);
      assertThat(b.health(0).penalty()).isEqualTo(10);
    }

    @Test
    @DisplayName("HE-4 a trial that fails starts the whole cooldown again")
    void fails() {
      b.pick().failed(CONNECTION, null);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      assertThat(b.health(0).quarantines()).isEqualTo(2);
      b.pass(4999);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      b.pass(1);
      assertThat(b.status(0)).isEqualTo(HALF_OPEN);
      b.pick().succeeded();
      assertThat(b.status(0)).isEqualTo(HEALTHY);
    }

    @Test
    @DisplayName("HE-4 a trial as a later candidate that fails starts the cooldown again too")
    void failsLater() {
      Candidates<FakeMember> route = b.group.inOrder(List.of(b.m(1), b.m(0)), null);
      b.kept(route.next()).failed(CONNECTION, null);
      b.kept(route.next()).failed(CONNECTION, null);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
    }

    @Test
    @DisplayName("HE-11 a trial that is cancelled says nothing: the next caller has it")
    void cancelled() {
      b.pick().cancelled();
      assertThat(b.status(0)).isEqualTo(HALF_OPEN);
      assertThat(b.pick().member()).isSameAs(b.m(0));
      assertThat(b.picks(20)).doesNotContainKey("m0");
    }

    @Test
    @DisplayName("HE-12a the cancel of an earlier trial frees no later one")
    void staleCancel() {
      Claim<FakeMember> earlier = b.kept(b.group.pick(m -> false, null));
      List<FakeMember> only = List.of(b.m(0));
      b.kept(b.group.inOrder(only, null).next()).failed(CONNECTION, null);
      assertThat(b.status(0)).isEqualTo(QUARANTINED);
      b.pass(5000);
      Claim<FakeMember> trial = b.pick();
      assertThat(trial.member()).isSameAs(b.m(0));
      earlier.cancelled();
      assertThat(b.picks(20)).doesNotContainKey("m0");
    }

    @Test
    @DisplayName(
        "HE-12a with none in service a taken trial does not leave callers without a choice")
    void noneElse() {
      fail(1, 3);
      fail(2, 3);
      assertThat(b.pick().member()).isSameAs(b.m(0));
      assertThat(b.group.pick(m -> false, null)).isNotNull().satisfies(Claim::cancelled);
    }
  }

  @Nested
  class Cap {
    @Test
    @DisplayName("HE-6 one held back by the cap stays in service, and goes out once there is room")
    void heldBack() {
      try (Bench c =
          new Bench(
              HealthPolicy.consecutiveFailures(1)
                  .cooldown(ofSeconds(5))
                  .maxQuarantined(0.5)
                  .build(),
              3)) {
        c.on(0).failed(CONNECTION, null);
        c.on(1).failed(CONNECTION, null);
        assertThat(c.status(0)).isEqualTo(QUARANTINED);
        assertThat(c.status(1)).isEqualTo(SUSPECT);
        assertThat(c.changes()).endsWith("m1: HEALTHY -> SUSPECT CAP_REACHED");
        assertThat(c.picks(20)).containsOnlyKeys("m1", "m2");
        c.on(1).failed(CONNECTION, null);
        assertThat(c.status(1)).isEqualTo(SUSPECT);
        c.pass(5000);
        c.on(0).succeeded();
        assertThat(c.status(0)).isEqualTo(HEALTHY);
        c.on(1).failed(CONNECTION, null);
        assertThat(c.status(1)).isEqualTo(QUARANTINED);
      }
    }
  }

  @Nested
  class OwnFallback {
    @Test
    @DisplayName("HE-6 with a fallback of its own the adapter gets nothing of what is out")
    void nothing() {
      try (Bench c =
          new Bench(
              HealthPolicy.consecutiveFailures(1).cooldown(ofSeconds(5)).ownFallback().build(),
              2)) {
        c.on(0).failed(CONNECTION, null);
        assertThat(c.picks(5)).containsOnlyKeys("m1");
        c.on(1).failed(CONNECTION, null);
        assertThat(c.group.pick(m -> false, null)).isNull();
        assertThat(c.group.inOrder(c.members, null).next()).isNull();
        c.pass(5000);
        assertThat(c.picks(2)).containsOnlyKeys("m0", "m1");
      }
    }
  }
}
