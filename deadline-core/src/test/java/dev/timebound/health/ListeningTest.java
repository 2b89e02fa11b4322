package dev.timebound.health;

import static dev.timebound.health.MemberStatus.HEALTHY;
import static dev.timebound.health.MemberStatus.QUARANTINED;
import static dev.timebound.health.MemberStatus.SUSPECT;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** A member that this side could not hear. */
class ListeningTest {
  private final Bench b =
      new Bench(
          HealthPolicy.silence(ofSeconds(1))
              .confirmedByProbe(ofSeconds(1))
              .maxQuarantined(0.5)
              .build(),
          4);

  @AfterEach
  void nothingIsLeft() {
    b.close();
  }

  @Test
  @DisplayName("BT-43 HE-10 while nobody could hear the member its silence counts for nothing")
  void silence() {
    b.on(0).waiting();
    Claim<FakeMember> busy = b.on(1);
    b.m(0).deaf = true;
    b.passWithProgress(5000, busy);
    assertThat(b.changes()).isEmpty();
    b.m(0).deaf = false;
    b.passWithProgress(900, busy);
    assertThat(b.changes()).as("the wait starts anew").isEmpty();
    b.passWithProgress(400, busy);
    assertThat(b.status(0)).isEqualTo(SUSPECT);
  }

  @Test
  @DisplayName("BT-43 HE-10 a probe whose limit passes meanwhile counts for nothing")
  void probe() {
    b.on(0).waiting();
    Claim<FakeMember> busy = b.on(1);
    b.passWithProgress(1200, busy);
    assertThat(b.m(0).probes).isOne();
    b.m(0).deaf = true;
    b.passWithProgress(5000, busy);
    assertThat(b.status(0)).isEqualTo(SUSPECT);
    b.m(0).deaf = false;
    b.passWithProgress(12_000, busy);
    assertThat(b.status(0)).isEqualTo(QUARANTINED);
    assertThat(b.status(1)).isEqualTo(HEALTHY);
  }
}
