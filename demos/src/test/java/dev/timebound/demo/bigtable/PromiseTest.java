package dev.timebound.demo.bigtable;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.demo.Scenario;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class PromiseTest {

  @Test
  @DisplayName("all kept: nothing is broken, and the RESULT line has its ten fields in order")
  void kept() {
    StallReport timebound = report(figures(100, 0, 0, 0, 0, 2_100, 2_050), 2, 2);
    StallReport google = report(figures(100, 0, 0, 0, 0, 10_003, 8_000), 0, 0);

    assertThat(broken(timebound)).isEmpty();
    assertThat(Promise.result(timebound, google))
        .hasToString(
            "RESULT bigtable max_ms=2100 google_max_ms=10003 over_1s=4 silence_ms=2050 errors=0"
                + " lost=0 doubled=0 quarantined=2 restored=2");
  }

  @Test
  @DisplayName("an error, a row lost, doubled or wrong, no read at all: broken")
  void counts() {
    assertThat(broken(report(figures(9, 1, 0, 0, 0, 1, 1), 1, 1)))
        .containsExactly("reads failed: 1 (expected: 0)");
    assertThat(broken(report(figures(9, 0, 1, 0, 0, 1, 1), 1, 1)))
        .containsExactly("rows lost: 1 (expected: 0)");
    assertThat(broken(report(figures(9, 0, 0, 1, 0, 1, 1), 1, 1)))
        .containsExactly("rows doubled: 1 (expected: 0)");
    assertThat(broken(report(figures(9, 0, 0, 0, 1, 1, 1), 1, 1)))
        .containsExactly("rows wrong: 1 (expected: 0)");
    assertThat(broken(report(figures(0, 0, 0, 0, 0, 1, 1), 1, 1)))
        .containsExactly("reads: 0 (expected: at least 1)");
  }

  @Test
  @DisplayName("no channel quarantined, none restored: broken")
  void quarantine() {
    assertThat(broken(report(figures(9, 0, 0, 0, 0, 1, 1), 0, 0)))
        .containsExactly(
            "channels quarantined: 0 (expected: at least 1)",
            "channels restored: 0 (expected: at least 1)");
  }

  @Test
  @DisplayName("5 s is kept, a millisecond more is broken, for reads and for silences")
  void bounds() {
    assertThat(broken(report(figures(9, 0, 0, 0, 0, 5_000, 5_000), 1, 1))).isEmpty();
    assertThat(broken(report(figures(9, 0, 0, 0, 0, 5_001, 1), 1, 1)))
        .containsExactly("slowest read: 5001 ms (expected: at most 5000 ms)");
    assertThat(broken(report(figures(9, 0, 0, 0, 0, 1, 5_001), 1, 1)))
        .containsExactly("longest silence of a scan: 5001 ms (expected: at most 5000 ms)");
  }

  @Test
  @DisplayName("Google's own figures break nothing; a run that stalled no busy connection does")
  void outcome() {
    Map<Variant, StallReport> reports = new EnumMap<>(Variant.class);
    for (Variant variant : Variant.values()) {
      reports.put(variant, report(figures(9, 3, 3, 3, 3, 20_000, 20_000), 0, 0));
    }
    reports.put(Variant.TIMEBOUND, report(figures(9, 0, 0, 0, 0, 2_000, 2_000), 1, 1));
    assertThat(BigtableScenario.outcome(reports).broken()).isEmpty();

    reports.put(Variant.GOOGLE_SINGLE, new StallReport(figures(9, 0, 0, 0, 0, 1, 1), false, 0, 0));
    assertThat(BigtableScenario.outcome(reports).broken())
        .containsExactly(
            "Google, pool of 1: no busy connection could be kept stalled (expected: one)");
  }

  @Test
  @DisplayName("the table has a column a variant and a line a figure")
  void table() {
    Map<Variant, StallReport> reports = new EnumMap<>(Variant.class);
    reports.put(Variant.GOOGLE_POOL, report(figures(9, 0, 0, 0, 0, 10_003, 8_000), 0, 0));
    reports.put(Variant.TIMEBOUND, report(figures(9, 0, 0, 0, 0, 2_100, 2_050), 1, 1));

    assertThat(StallTable.of(reports).lines().toList())
        .anyMatch(line -> line.matches("slowest read +10,003 ms +2,100 ms"))
        .anyMatch(line -> line.matches("longest silence of an open scan +8,000 ms +2,050 ms"))
        .anyMatch(line -> line.matches("channels quarantined, restored +0, 0 +1, 1"));
  }

  @Test
  @DisplayName("the summary sets our slowest read and silence beside Google's")
  void summary() {
    StallReport timebound = report(figures(100, 0, 0, 0, 0, 2_100, 2_050), 2, 2);
    StallReport google = report(figures(100, 0, 0, 0, 0, 10_003, 8_000), 0, 0);
    assertThat(Promise.summary(timebound, google))
        .isEqualTo(
            "slowest read 2.1 s instead of 10.0 s with Google's client, longest silence of a scan"
                + " 2.1 s instead of 8.0 s");
  }

  private static List<String> broken(StallReport report) {
    return Scenario.Outcome.of(Promise.result(report, report), Promise.of(report), "").broken();
  }

  private static StallReport report(LoadFigures figures, int quarantined, int restored) {
    return new StallReport(figures, true, quarantined, restored);
  }

  private static LoadFigures figures(
      long requests, long errors, long lost, long doubled, long wrong, long slowest, long silence) {
    return new LoadFigures(
        requests, errors, lost, doubled, wrong, 1.5, 8.25, 120, 4, slowest, silence, 1_000, "");
  }
}
