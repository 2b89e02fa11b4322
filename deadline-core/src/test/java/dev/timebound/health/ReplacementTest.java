package dev.timebound.health;

import static dev.timebound.health.ProbeAnswer.ANSWERED;
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
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

class ReplacementTest {
  @Nested
  class Who {
    @Test
    @DisplayName("HE-7 BT-18 one that went out three times in five minutes is replaced, in place")
    void thrice() {
      try (OffenderPool p = new OffenderPool(4)) {
        p.out(1, 2);
        assertThat(p.made).isEmpty();
        p.out(1, 1);
        assertThat(p.names()).containsExactly("m0", "n1", "m2", "m3");
        assertThat(p.told("m1"))
            .containsExactly(HealthReason.REPEAT_OFFENDER, HealthReason.REPLACED);
        assertThat(p.b.m(1).replacedBy).isSameAs(p.made.get(0));
        assertThat(p.made.get(0).probes).isEqualTo(1);
        assertThat(p.made.get(0).discarded).isZero();
        assertThat(p.b.picks(8)).containsEntry("n1", 2).doesNotContainKey("m1");
      }
    }

    @Test
    @DisplayName("HE-7 BT-18 three times in more than five minutes is not often enough")
    void tooLong() {
      try (OffenderPool p = new OffenderPool(4)) {
        p.out(1, 2);
        p.b.pass(ofMinutes(5));
        p.out(1, 2);
        assertThat(p.made).isEmpty();
        p.out(1, 1);
        assertThat(p.made).hasSize(1);
      }
    }

    @Test
    @DisplayName("HE-7 BT-18 one that does not stand out from its group is not replaced")
    void median() {
      try (OffenderPool p = new OffenderPool(4)) {
        // 3, 2, 1, 1: the median is 1.5, and 3 is not more than twice that
        p.out(1, 2);
        p.out(2, 1);
        p.out(3, 1);
        p.out(0, 3);
        assertThat(p.made).isEmpty();
        p.out(0, 1);
        assertThat(p.names()).containsExactly("n0", "m1", "m2", "m3");
      }
    }

    @Test
    @DisplayName("HE-7 of a group of two the other's count is the measure; one alone never is")
    void small() {
      try (OffenderPool two = new OffenderPool(2);
          OffenderPool one = new OffenderPool(1)) {
        two.out(1, 1);
        two.out(0, 3);
        assertThat(two.names()).containsExactly("n0", "m1");
        one.out(0, 9);
        assertThat(one.made).isEmpty();
      }
    }

    @Test
    @DisplayName("HE-7 a trial that fails is no further quarantine: it was out all the time")
    void trials() {
      MemberState.Outs outs = MemberState.Outs.NONE.again(1, 10).trialFailed().trialFailed();
      assertThat(outs.count()).isEqualTo(3);
      assertThat(outs.within(2, 10)).isEqualTo(1);
    }

    @Test
    @DisplayName("HE-7 nothing is replaced where the policy does not say so")
    void off() {
      HealthPolicy.Builder b =
          HealthPolicy.consecutiveFailures(1)
              .restoredByProbe(ofSeconds(1))
              .probeInterval(ofMillis(250), ofMillis(250));
      try (OffenderPool p = new OffenderPool(4, b.build())) {
        p.out(1, 9);
        assertThat(p.made).isEmpty();
        assertThat(p.names()).contains("m1");
      }
    }
  }

  @Nested
  class Probed {
    @Test
    @DisplayName("HE-7 BT-18 the old one stays until the new one has answered a probe")
    void first() {
      try (OffenderPool p = new OffenderPool(4)) {
        p.freshAnswer = false;
        p.out(1, 3);
        assertThat(p.names()).containsExactly("m0", "m1", "m2", "m3");
        p.b.pass(ofSeconds(2));
        FakeMember fresh = p.made.get(0);
        assertThat(fresh.probes).as("asked again").isGreaterThan(1);
        assertThat(fresh.running).as("one at a time").isEqualTo(1);
        fresh.answer(ANSWERED);
        assertThat(p.names()).containsExactly("m0", "n1", "m2", "m3");
      }
    }

    @Test
    @DisplayName("HE-7 the new one's probe is prepared as any")
    void prepared() {
      try (OffenderPool p = new OffenderPool(4)) {
        Sinks.Empty<Void> credentials = Sinks.empty();
        p.b.m(1).replacement =
            () -> {
              FakeMember fresh = p.fresh("n1");
              fresh.prepare = credentials::asMono;
              return Mono.just(fresh);
            };
        p.out(1, 3);
        assertThat(p.names()).contains("m1");
        credentials.tryEmitEmpty();
        assertThat(p.names()).contains("n1");
      }
    }

    @Test
    @DisplayName(
        "HE-7 BT-18 one that never answers does not join: the old one stays, and is told of")
    void never() {
      try (OffenderPool p = new OffenderPool(4)) {
        p.freshAnswer = false;
        p.out(1, 3);
        p.b.pass(ofSeconds(10));
        assertThat(p.names()).containsExactly("m0", "m1", "m2", "m3");
        assertThat(p.made).singleElement().satisfies(m -> assertThat(m.discarded).isEqualTo(1));
        assertThat(p.made.get(0).running).isZero();
        assertThat(p.told("m1"))
            .containsExactly(HealthReason.REPEAT_OFFENDER, HealthReason.NOT_REPLACED);
        // and serves on
        assertThat(p.b.picks(4)).containsEntry("m1", 1);
        p.freshAnswer = true;
        p.b.pass(ofSeconds(45));
        assertThat(p.made).as("not before the minute is over").hasSize(1);
        p.b.pass(ofSeconds(5));
        assertThat(p.names()).contains("n1");
      }
    }

    @Test
    @DisplayName("HE-7 BT-18 one that cannot be made: the old one stays")
    void fails() {
      try (OffenderPool p = new OffenderPool(4)) {
        p.b.m(1).replacement = () -> Mono.error(new IllegalStateException("no address"));
        p.out(1, 3);
        assertThat(p.names()).containsExactly("m0", "m1", "m2", "m3");
        assertThat(p.told("m1"))
            .containsExactly(HealthReason.REPEAT_OFFENDER, HealthReason.NOT_REPLACED);
      }
    }

    @Test
    @DisplayName("HE-7 a making that never ends is cancelled at the limit")
    void hangs() {
      try (OffenderPool p = new OffenderPool(4)) {
        List<String> cancelled = new ArrayList<>();
        p.b.m(1).replacement = () -> Mono.<FakeMember>never().doOnCancel(() -> cancelled.add("m1"));
        p.out(1, 3);
        p.b.pass(ofSeconds(10));
        assertThat(cancelled).containsExactly("m1");
        assertThat(p.told("m1")).endsWith(HealthReason.NOT_REPLACED);
      }
    }

    @Test
    @DisplayName("HE-7 a member of the group is no replacement, and is not discarded")
    void known() {
      try (OffenderPool p = new OffenderPool(4)) {
        p.b.m(1).replacement = () -> Mono.just(p.b.m(2));
        p.out(1, 3);
        assertThat(p.names()).containsExactly("m0", "m1", "m2", "m3");
        assertThat(p.b.m(2).discarded).isZero();
        assertThat(p.told("m1")).endsWith(HealthReason.NOT_REPLACED);
      }
    }

    @Test
    @DisplayName("HE-7 a name that is taken is refused, the new one is discarded")
    void nameTaken() {
      try (OffenderPool p = new OffenderPool(4)) {
        p.b.m(1).replacement = () -> Mono.fromSupplier(() -> p.fresh("m2"));
        p.out(1, 3);
        assertThat(p.names()).containsExactly("m0", "m1", "m2", "m3");
        assertThat(p.made.get(0).discarded).isEqualTo(1);
      }
    }
  }

  @Nested
  class Settings {
    @Test
    @DisplayName("HE-7 each value is checked where it is set")
    void refused() {
      HealthPolicy.Builder b = HealthPolicy.consecutiveFailures(1).restoredByProbe(ofSeconds(1));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> b.replaceRepeatOffenders(0, ofMinutes(5), 2, ofMinutes(1)))
          .withMessage("replaceRepeatOffenders.times: 0 (expected: >= 1)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> b.replaceRepeatOffenders(3, ofMinutes(0), 2, ofMinutes(1)))
          .withMessage("replaceRepeatOffenders.within: PT0S (expected: > 0)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> b.replaceRepeatOffenders(3, ofMinutes(5), Double.NaN, ofMinutes(1)))
          .withMessage("replaceRepeatOffenders.timesTheMedian: NaN (expected: >= 0)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> b.replaceRepeatOffenders(3, ofMinutes(5), 2, ofMinutes(0)))
          .withMessage("replaceRepeatOffenders.atMostEvery: PT0S (expected: > 0)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> b.replacementLimit(ofMinutes(0)))
          .withMessage("replacementLimit: PT0S (expected: > 0)");
      assertThatIllegalArgumentException()
          .isThrownBy(
              () ->
                  HealthPolicy.consecutiveFailures(1)
                      .cooldown(ofSeconds(1))
                      .replaceRepeatOffenders(3, ofMinutes(5), 2, ofMinutes(1))
                      .build())
          .withMessageContaining("expected: confirmedByProbe or restoredByProbe");
    }
  }
}
