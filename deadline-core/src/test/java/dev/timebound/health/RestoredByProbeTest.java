package dev.timebound.health;

import static dev.timebound.health.MemberStatus.HEALTHY;
import static dev.timebound.health.MemberStatus.QUARANTINED;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("HE-4 suspicion itself puts a member out, and an answered probe brings it back")
class RestoredByProbeTest {
  private final Bench b =
      new Bench(
          HealthPolicy.consecutiveFailures(3)
              .restoredByProbe(ofSeconds(1))
              .probeInterval(ofMillis(250), ofMillis(250))
              .ownFallback()
              .build(),
          1);

  @AfterEach
  void nothingIsLeft() {
    b.close();
  }

  private void fail(int times) {
    for (int i = 0; i < times; i++) {
      b.on(0).failed(FailureKind.CONNECTION, new IllegalStateException("cut"));
    }
  }

  @Test
  @DisplayName("HE-4 the last failure puts it out, with no probe before it, and ends its claims")
  void out() {
    Claim<FakeMember> open = b.on(0);
    fail(2);
    assertThat(b.status(0)).isEqualTo(HEALTHY);
    fail(1);
    assertThat(b.status(0)).isEqualTo(QUARANTINED);
    assertThat(b.changes()).containsExactly("m0: HEALTHY -> QUARANTINED FAILURES");
    assertThat(open.isEnded()).isTrue();
    assertThat(b.group.pick(m -> false, null)).isNull();
  }

  @Test
  @DisplayName("HE-4 it is probed at once, then at the interval, and the first answer restores it")
  void back() {
    fail(3);
    b.pass(1);
    assertThat(b.m(0).probes).isOne();
    b.pass(3000);
    assertThat(b.status(0)).isEqualTo(QUARANTINED);
    assertThat(b.m(0).probes).as("a probe with no answer takes its second").isBetween(3, 4);
    b.m(0).answers(ProbeAnswer.ANSWERED);
    b.pass(1001);
    assertThat(b.status(0)).isEqualTo(HEALTHY);
    assertThat(b.changes()).endsWith("m0: QUARANTINED -> HEALTHY PROBE_ANSWERED");
    fail(2);
    assertThat(b.status(0)).as("its failures are forgotten").isEqualTo(HEALTHY);
  }

  @Test
  @DisplayName("HE-4 a success between them starts the count anew")
  void success() {
    fail(2);
    b.on(0).succeeded();
    fail(2);
    assertThat(b.status(0)).isEqualTo(HEALTHY);
  }
}
