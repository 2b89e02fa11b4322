package dev.timebound.health;

import static java.time.Duration.ofMinutes;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** How often, and how many at a time. */
class ReplacementRateTest {
  @Test
  @DisplayName("HE-7 BT-18 one replacement a minute; the next offender waits, and that is told")
  void minute() {
    try (OffenderPool p = new OffenderPool(6)) {
      p.out(1, 3);
      assertThat(p.names()).contains("n1");
      p.out(2, 3);
      assertThat(p.made).hasSize(1);
      assertThat(p.told("m2")).containsExactly(HealthReason.RATE_LIMITED);
      assertThat(p.b.status(2)).isEqualTo(MemberStatus.HEALTHY);
      p.b.pass(ofSeconds(54));
      assertThat(p.made).hasSize(1);
      p.b.pass(ofSeconds(3));
      assertThat(p.names()).contains("n1", "n2");
    }
  }

  @Test
  @DisplayName("HE-7 one at a time")
  void oneAtATime() {
    try (OffenderPool p =
        new OffenderPool(6, OffenderPool.restored().replacementLimit(ofMinutes(5)).build())) {
      p.freshAnswer = false;
      p.out(1, 3);
      p.b.pass(ofMinutes(2));
      p.out(2, 3);
      assertThat(p.made).hasSize(1);
      assertThat(p.told("m2")).containsExactly(HealthReason.RATE_LIMITED);
    }
  }

  @Test
  @DisplayName("HE-7 one that has no replacement spends no permission")
  void none() {
    try (OffenderPool p = new OffenderPool(6)) {
      p.b.m(1).replacement = Mono::empty;
      p.out(1, 3);
      assertThat(p.told("m1"))
          .containsExactly(HealthReason.REPEAT_OFFENDER, HealthReason.NOT_REPLACED);
      p.out(2, 3);
      assertThat(p.names()).contains("m1", "n2");
    }
  }

  @Test
  @DisplayName("HE-10 no timer runs once nobody is due any more")
  void idle() {
    try (OffenderPool p = new OffenderPool(6)) {
      p.out(1, 3);
      p.out(2, 3);
      p.b.pass(ofMinutes(6));
      assertThat(p.made).hasSize(2);
      long before = p.b.time.getScheduledTaskCount();
      p.b.pass(ofMinutes(30));
      assertThat(p.b.time.getScheduledTaskCount()).isEqualTo(before);
    }
  }
}
