package dev.timebound.demo.cas;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.demo.Scenario.Part;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class PromiseTest {
  private static final Phases PHASES = Phases.full();

  /** A run as it should be, but for one of its figures. */
  private static Report report(
      long unanswered, long wrong, long falseMissing, long failed, int late, long back) {
    Figures figures =
        new Figures(
            1_000,
            unanswered,
            Map.of("UNAVAILABLE", 7L),
            1.5,
            20,
            8_000,
            12,
            wrong,
            falseMissing,
            500,
            failed,
            failed == 0 ? "" : "gone");
    return new Report(figures, back, back, 9, late, 0.4);
  }

  private static Report kept() {
    return report(0, 0, 0, 0, 4, 8_000);
  }

  private static List<Report> broken() {
    return List.of(
        report(1, 0, 0, 0, 4, 8_000),
        report(0, 1, 0, 0, 4, 8_000),
        report(0, 0, 1, 0, 4, 8_000),
        report(0, 0, 0, 1, 4, 8_000),
        report(0, 0, 0, 0, 5, 8_000),
        report(0, 0, 0, 0, 4, 8_001),
        report(0, 0, 0, 0, 4, -1));
  }

  @Test
  @DisplayName("holds at its bounds")
  void holds() {
    assertThat(Promise.of(kept(), PHASES)).allMatch(Part::held);
    assertThat(Promise.trials(PHASES)).isEqualTo(4);
  }

  @ParameterizedTest
  @MethodSource("broken")
  @DisplayName("is broken by each of its figures alone")
  void isBroken(Report report) {
    assertThat(Promise.of(report, PHASES)).anyMatch(part -> !part.held());
  }

  @Test
  @DisplayName("a missed goal breaks nothing")
  void goals() {
    assertThat(Promise.goals(kept(), PHASES)).anyMatch(goal -> !goal.held());
  }

  @Test
  @DisplayName("the RESULT line has its keys in order, the outcome tells of both clients")
  void result() {
    Map<Variant, Report> reports = new EnumMap<>(Variant.class);
    reports.put(Variant.STOCK, report(30, 0, 0, 95, 150, -1));
    reports.put(Variant.TIMEBOUND, kept());
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    var outcome =
        CasScenario.outcome(reports, PHASES, new PrintStream(out, true, StandardCharsets.UTF_8));
    assertThat(outcome.broken()).isEmpty();
    assertThat(outcome.result())
        .hasToString(
            "RESULT cas unanswered=0 wrong=0 false_missing=0 failed_mirrored_reads=0 max_ms=8000"
                + " back_ms=8000");
    assertThat(outcome.summary()).contains("0 instead of 30", "0 instead of 95");
    assertThat(OutageTable.of(reports)).contains("never", "8.000 s", "UNAVAILABLE");
  }
}
