package dev.timebound.health;

import static dev.timebound.health.Decision.Action.PREPARE_REPLACEMENT;
import static dev.timebound.health.Decision.Action.QUARANTINE;
import static dev.timebound.health.Decision.Action.REPLACE;
import static dev.timebound.health.Decision.Action.RESTORE;
import static dev.timebound.health.Decision.Action.SUSPECT;
import static dev.timebound.health.Decision.Action.TRY;
import static dev.timebound.health.FailureKind.CONNECTION;
import static dev.timebound.health.ProbeAnswer.ANSWERED;
import static dev.timebound.health.ProbeAnswer.CONNECTION_FAILED;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofMinutes;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.health.Decision.Action;
import dev.timebound.health.Decision.Outcome;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.test.scheduler.VirtualTimeScheduler;

class DecisionsTest {

  private static List<String> kinds(HealthEngine engine) {
    return engine.decisions().stream()
        .map(d -> d.member() + " " + d.action() + " " + d.outcome())
        .toList();
  }

  private static String kind(String member, Action action, Outcome outcome) {
    return member + " " + action + " " + outcome;
  }

  @Nested
  class Kept {
    @Test
    @DisplayName("HE-13 a decision has its reason, its figure and the group's figure beside it")
    void content() {
      HealthPolicy policy =
          HealthPolicy.consecutiveFailures(2).cooldown(ofSeconds(5)).maxQuarantined(0.5).build();
      try (Bench b = new Bench(policy, 4)) {
        b.pass(ofSeconds(90));
        b.on(0).failed(CONNECTION, null);
        b.on(1).failed(CONNECTION, null);
        b.on(1).failed(CONNECTION, new IllegalStateException("refused"));
        assertThat(b.engine.decisions())
            .containsExactly(
                new Decision(
                    "g",
                    "m1",
                    QUARANTINE,
                    Outcome.DONE,
                    HealthReason.FAILURES,
                    "2 connection failures in a row, last: java.lang.IllegalStateException:"
                        + " refused",
                    "median of 0.5 failures in a row, 1 of 4 suspect or out, at most 2",
                    Instant.ofEpochSecond(90)));
        b.pass(ofSeconds(5));
        b.pick().succeeded();
        assertThat(kinds(b.engine))
            .endsWith(kind("m1", TRY, Outcome.DONE), kind("m1", RESTORE, Outcome.DONE));
      }
    }

    @Test
    @DisplayName("HE-13 what a silence is measured against: how many others received something")
    void silence() {
      HealthPolicy policy =
          HealthPolicy.silence(ofSeconds(1)).confirmedByProbe(ofSeconds(1)).build();
      try (Bench b = new Bench(policy, 3)) {
        b.on(0).waiting();
        b.passWithProgress(1500, b.on(1));
        Decision d = b.engine.decisions().get(0);
        assertThat(d.action()).isEqualTo(SUSPECT);
        assertThat(d.figure()).startsWith("a caller waited PT1");
        assertThat(d.groupFigure()).isEqualTo("1 others received something, 1 of 3 suspect or out");
      }
    }

    @Test
    @DisplayName("HE-13 what the cap held back is among them")
    void capped() {
      HealthPolicy policy =
          HealthPolicy.consecutiveFailures(1).cooldown(ofSeconds(5)).maxQuarantined(0.5).build();
      try (Bench b = new Bench(policy, 3)) {
        b.on(0).failed(CONNECTION, null);
        b.on(1).failed(CONNECTION, null);
        assertThat(kinds(b.engine))
            .containsExactly(
                kind("m0", QUARANTINE, Outcome.DONE), kind("m1", QUARANTINE, Outcome.CAP_REACHED));
        assertThat(b.engine.decisions().get(1))
            .hasToString(
                "QUARANTINE g/m1 not done, CAP_REACHED: 1 connection failures in a row, last: null;"
                    + " kept in service: 2 of 3 suspect or out, at most 1 (group: 2 of 3 suspect or"
                    + " out, at most 1)");
      }
    }

    @Test
    @DisplayName("HE-7 HE-13 replacements, those that the rate held back and that failed included")
    void replacements() {
      HealthPolicy policy =
          HealthPolicy.consecutiveFailures(1)
              .restoredByProbe(ofSeconds(1))
              .probeInterval(ofMillis(10), ofMillis(10))
              .replaceRepeatOffenders(2, ofMinutes(5), 2, ofMinutes(1))
              .build();
      try (Bench b = new Bench(policy, 4)) {
        b.members.forEach(m -> m.answers(ANSWERED));
        FakeMember fresh = FakeMember.named("n0");
        fresh.answers(ANSWERED);
        b.m(0).replacement = () -> Mono.just(fresh);
        b.m(1).replacement = () -> Mono.error(new IllegalStateException("no address"));
        for (int i : new int[] {0, 0, 1, 1}) {
          b.on(i).failed(CONNECTION, null);
          b.pass(100);
        }
        b.pass(ofMinutes(1));
        assertThat(kinds(b.engine).stream().filter(k -> k.contains("REPLACE")))
            .containsExactly(
                kind("m0", PREPARE_REPLACEMENT, Outcome.DONE),
                kind("m0", REPLACE, Outcome.DONE),
                kind("m1", PREPARE_REPLACEMENT, Outcome.RATE_LIMITED),
                kind("m1", PREPARE_REPLACEMENT, Outcome.DONE),
                kind("m1", REPLACE, Outcome.FAILED));
        assertThat(b.engine.decisions())
            .filteredOn(d -> d.action() == REPLACE)
            .extracting(Decision::figure)
            .containsExactly(
                "quarantined 2 times in PT5M, its group's median is 0; n0 answered a probe and"
                    + " takes its place",
                "quarantined 2 times in PT5M, its group's median is 0; it stays: its replacement:"
                    + " java.lang.IllegalStateException: no address");
      }
    }

    @Test
    @DisplayName("HE-13 the last 500, oldest first, over all groups")
    void last() {
      HealthPolicy policy = HealthPolicy.consecutiveFailures(1).cooldown(ofSeconds(5)).build();
      try (Bench b = new Bench(policy, 2)) {
        FakeMember other = FakeMember.named("other");
        HealthGroup<FakeMember> second = b.engine.group("second", policy);
        second.add(other);
        Claim<FakeMember> claim = second.pick(m -> false, null);
        for (int i = 0; i < 300; i++) {
          b.on(0).failed(CONNECTION, new IllegalStateException("n" + i));
          b.on(0).succeeded();
        }
        assertThat(claim).isNotNull();
        claim.failed(CONNECTION, null);
        List<Decision> last = b.engine.decisions();
        assertThat(last).hasSize(500);
        assertThat(last.get(499).group()).isEqualTo("second");
        assertThat(last.stream().filter(d -> d.action() == QUARANTINE).map(Decision::figure))
            .hasSize(250)
            .element(0)
            .asString()
            .endsWith("n51");
      }
    }

    @Test
    @DisplayName("HE-13 of two writers of one place the later decision stands, whoever is slower")
    void overtaken() {
      Decisions decisions = new Decisions();
      decisions.put(507, numbered(507));
      decisions.put(7, numbered(7));
      decisions.put(8, numbered(8));
      decisions.put(508, numbered(508));
      assertThat(decisions.last()).extracting(Decision::figure).containsExactly("507", "508");
    }

    private Decision numbered(int n) {
      String figure = Integer.toString(n);
      return new Decision(
          "g", "m", QUARANTINE, Outcome.DONE, HealthReason.FAILURES, figure, "", Instant.EPOCH);
    }
  }

  @Nested
  class DryRun {
    private final HealthPolicy.Builder policy =
        HealthPolicy.consecutiveFailures(1)
            .restoredByProbe(ofSeconds(1))
            .probeInterval(ofSeconds(1), ofSeconds(1))
            .penalty(25, ofSeconds(5))
            .slowStart(25, ofSeconds(5))
            .replaceRepeatOffenders(2, ofMinutes(5), 2, ofMinutes(1));

    @Test
    @DisplayName("HE-13 a dry run decides and tells, and nothing changes by it")
    void tells() {
      try (Bench b = new Bench(policy.dryRun().build(), 2)) {
        List<String> made = new ArrayList<>();
        b.m(0).replacement =
            () -> {
              made.add("n0");
              return Mono.just(FakeMember.named("n0"));
            };
        Claim<FakeMember> open = b.on(0);
        b.m(0).answers(CONNECTION_FAILED);
        b.on(0).failed(CONNECTION, null);
        assertThat(b.status(0)).as("what would be").isEqualTo(MemberStatus.QUARANTINED);
        assertThat(b.events).singleElement().satisfies(e -> assertThat(e.dryRun()).isTrue());
        assertThat(kinds(b.engine)).containsExactly(kind("m0", QUARANTINE, Outcome.DRY_RUN));
        assertThat(open.isEnded()).as("its open requests run on").isFalse();
        assertThat(b.failed).isEmpty();
        assertThat(b.health(0).penalty()).isZero();
        open.succeeded();
        assertThat(b.picks(20)).as("it is chosen as ever").containsEntry("m0", 10);
        b.m(0).answers(ANSWERED);
        b.pass(ofSeconds(1));
        assertThat(b.status(0)).isEqualTo(MemberStatus.HEALTHY);
        assertThat(b.health(0).penalty()).isZero();
        b.on(0).failed(CONNECTION, null);
        assertThat(kinds(b.engine))
            .contains(kind("m0", PREPARE_REPLACEMENT, Outcome.DRY_RUN))
            .noneMatch(k -> k.contains("DONE"));
        b.pass(ofMinutes(2));
        assertThat(made).isEmpty();
        assertThat(kinds(b.engine).stream().filter(k -> k.contains("REPLACE"))).hasSize(1);
      }
    }

    @Test
    @DisplayName("HE-13 a trial in a dry run holds nobody back")
    void trial() {
      HealthPolicy cooldown =
          HealthPolicy.consecutiveFailures(1).cooldown(ofSeconds(5)).dryRun().build();
      try (Bench b = new Bench(cooldown, 2)) {
        b.on(0).failed(CONNECTION, null);
        b.pass(ofSeconds(5));
        assertThat(b.status(0)).isEqualTo(MemberStatus.HALF_OPEN);
        assertThat(b.picks(20)).containsEntry("m0", 10);
        b.on(0).succeeded();
        assertThat(b.status(0)).isEqualTo(MemberStatus.HEALTHY);
      }
    }

    @Test
    @DisplayName("HE-13 HE-9 of the whole engine; its decisions are metered, its changes are none")
    void engine() {
      SimpleMeterRegistry registry = new SimpleMeterRegistry();
      VirtualTimeScheduler time = VirtualTimeScheduler.create();
      HealthEngine engine =
          HealthEngine.builder().scheduler(time).meters(registry).dryRun(true).build();
      HealthGroup<FakeMember> g = engine.group("g", policy.build());
      IntStream.range(0, 2).forEach(i -> g.add(FakeMember.named("m" + i)));
      Claim<FakeMember> claim = g.pick(m -> false, null);
      assertThat(claim).isNotNull();
      claim.failed(CONNECTION, null);
      assertThat(
              registry
                  .get("timebound.health.decisions")
                  .tags("group", "g", "action", "quarantine", "outcome", "dry_run")
                  .counter()
                  .count())
          .isEqualTo(1);
      assertThat(registry.find("timebound.health.transitions").counters()).isEmpty();
      assertThat(registry.find("timebound.health.penalties").counters()).isEmpty();
      assertThat(
              registry
                  .get("timebound.health.members")
                  .tags("group", "g", "status", "quarantined")
                  .gauge()
                  .value())
          .isEqualTo(1);
      engine.close();
      time.dispose();
    }
  }
}
