package dev.timebound.health;

import static dev.timebound.health.MemberStatus.HALF_OPEN;
import static dev.timebound.health.MemberStatus.HEALTHY;
import static dev.timebound.health.MemberStatus.QUARANTINED;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class CooldownTest {
  private final Bench b =
      new Bench(HealthPolicy.consecutiveFailures(3).cooldown(ofSeconds(5)).build(), 3);

  @AfterEach
  void close() {
    b.close();
  }

  @Test
  @DisplayName("HE-4 three failures in a row, a cooldown, one trial, back again")
  void roundTrip() {
    for (int i = 0; i < 3; i++) {
      b.on(0).failed(FailureKind.CONNECTION, null);
    }
    assertThat(b.status(0)).isEqualTo(QUARANTINED);
    assertThat(b.picks(10)).doesNotContainKey("m0");
    b.pass(5000);
    assertThat(b.status(0)).isEqualTo(HALF_OPEN);
    Claim<FakeMember> trial = b.pick();
    assertThat(trial.member()).isSameAs(b.m(0));
    assertThat(b.picks(10)).doesNotContainKey("m0");
    trial.succeeded();
    assertThat(b.status(0)).isEqualTo(HEALTHY);
  }
}
