package dev.timebound.health;

import static dev.timebound.health.MemberStatus.HEALTHY;
import static dev.timebound.health.MemberStatus.QUARANTINED;
import static dev.timebound.health.MemberStatus.SUSPECT;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class CapTest {
  private static Bench pool(int size) {
    return new Bench(
        HealthPolicy.silence(ofSeconds(1))
            .confirmedByProbe(ofSeconds(1))
            .maxQuarantined(0.5)
            .build(),
        size);
  }

  /** The first of them stall, the others receive. */
  private static Claim<?>[] stall(Bench b, int stalled) {
    List<Claim<?>> receiving = new ArrayList<>();
    for (int i = 0; i < b.members.size(); i++) {
      Claim<FakeMember> c = b.on(i);
      if (i < stalled) {
        c.waiting();
      } else {
        receiving.add(c);
      }
    }
    return receiving.toArray(new Claim<?>[0]);
  }

  private static List<MemberStatus> statuses(Bench b) {
    return b.group.members().stream().map(MemberHealth::status).toList();
  }

  @Test
  @DisplayName("BT-16 HE-6 two of four stalled: both go out")
  void twoOfFour() {
    try (Bench b = pool(4)) {
      b.passWithProgress(2500, stall(b, 2));
      assertThat(statuses(b)).containsExactly(QUARANTINED, QUARANTINED, HEALTHY, HEALTHY);
    }
  }

  @Test
  @DisplayName("BT-16 HE-6 three of four stalled: none goes out, their claims stay where they are")
  void threeOfFour() {
    try (Bench b = pool(4)) {
      Claim<?>[] receiving = stall(b, 3);
      b.passWithProgress(20_000, receiving);
      assertThat(statuses(b)).containsExactly(SUSPECT, SUSPECT, SUSPECT, HEALTHY);
      assertThat(b.failed).isEmpty();
      assertThat(b.group.openClaims()).isEqualTo(4);
      assertThat(b.picks(40)).containsKeys("m0", "m1", "m2", "m3");
      assertThat(b.changes()).contains("m0: SUSPECT -> SUSPECT CAP_REACHED");
      assertThat(b.events)
          .filteredOn(e -> e.reason() == HealthReason.CAP_REACHED)
          .first()
          .satisfies(
              e ->
                  assertThat(e.figure())
                      .isEqualTo(
                          "a probe had no answer within PT1S;"
                              + " kept in service: 3 of 4 suspect or out, at most 2"));
    }
  }

  @Test
  @DisplayName("BT-16 one held back goes out once another has recovered")
  void heldBack() {
    try (Bench b = pool(4)) {
      Claim<?>[] receiving = stall(b, 3);
      b.passWithProgress(3000, receiving);
      b.m(0).answers(ProbeAnswer.ANSWERED);
      b.passWithProgress(20_000, receiving);
      assertThat(statuses(b)).containsExactly(HEALTHY, QUARANTINED, QUARANTINED, HEALTHY);
    }
  }

  @Test
  @DisplayName("BT-16 one that is out counts as suspect, and stays out when more become suspect")
  void staysOut() {
    try (Bench b = pool(4)) {
      Claim<?>[] receiving = stall(b, 1);
      b.passWithProgress(2500, receiving);
      assertThat(statuses(b)).containsExactly(QUARANTINED, HEALTHY, HEALTHY, HEALTHY);
      b.on(1).waiting();
      b.on(2).waiting();
      b.passWithProgress(200, receiving[2]);
      b.passWithProgress(10_000, receiving[2]);
      assertThat(statuses(b)).containsExactly(QUARANTINED, SUSPECT, SUSPECT, HEALTHY);
      b.m(0).answers(ProbeAnswer.ANSWERED);
      b.passWithProgress(10_000, receiving[2]);
      assertThat(statuses(b)).containsExactly(HEALTHY, QUARANTINED, QUARANTINED, HEALTHY);
    }
  }

  @Test
  @DisplayName("BT-16 half of three, rounded down, is one; of two, one")
  void roundedDown() {
    try (Bench b = pool(3)) {
      b.passWithProgress(5000, stall(b, 2));
      assertThat(statuses(b)).containsExactly(SUSPECT, SUSPECT, HEALTHY);
    }
    try (Bench b = pool(2)) {
      b.passWithProgress(2500, stall(b, 1));
      assertThat(statuses(b)).containsExactly(QUARANTINED, HEALTHY);
    }
  }

  @Test
  @DisplayName("BT-16 a pool of one: never; nor a pool whose others left")
  void one() {
    try (Bench b = pool(2)) {
      Claim<?>[] receiving = stall(b, 1);
      b.passWithProgress(1300, receiving);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
      b.group.remove(b.m(1));
      b.passWithProgress(5000, receiving);
      assertThat(b.status(0)).isEqualTo(SUSPECT);
    }
  }

  @Test
  @DisplayName("HE-6 with no cap every member but the one that receives may go out")
  void none() {
    try (Bench b =
        new Bench(HealthPolicy.silence(ofSeconds(1)).confirmedByProbe(ofSeconds(1)).build(), 4)) {
      b.passWithProgress(2500, stall(b, 3));
      assertThat(statuses(b)).containsExactly(QUARANTINED, QUARANTINED, QUARANTINED, HEALTHY);
    }
  }
}
