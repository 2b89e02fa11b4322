package dev.timebound.demo.pg;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.demo.Scenario;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class PromiseTest {
  private static final Standby.Leftovers NOTHING = new Standby.Leftovers(0, 0);

  @Test
  @DisplayName("all kept: nothing is broken, and the RESULT line has its six fields in order")
  void kept() {
    Report report = report(figures(100, 0, 1_150, 0, 0, 60), 67, NOTHING);

    assertThat(broken(report)).isEmpty();
    assertThat(Promise.result(report))
        .hasToString(
            "RESULT pg errors=0 max_ms=1150 back_ms=67 idle_in_tx=0 left_running=0"
                + " writer_wait_ms=57");
  }

  @Test
  @DisplayName("no read, an error, a stale answer, a failed write, something left: broken")
  void counts() {
    assertThat(broken(report(figures(0, 0, 1, 0, 0, 1), 1, NOTHING)))
        .containsExactly("reads: 0 (expected: at least 1)");
    assertThat(broken(report(figures(9, 1, 1, 0, 0, 1), 1, NOTHING)))
        .containsExactly("reads failed: 1 (expected: 0)");
    assertThat(broken(report(figures(9, 0, 1, 2, 0, 1), 1, NOTHING)))
        .containsExactly("answers older than asked for: 2 (expected: 0)");
    assertThat(broken(report(figures(9, 0, 1, 0, 3, 1), 1, NOTHING)))
        .containsExactly("writes failed: 3 (expected: 0)");
    assertThat(broken(report(figures(9, 0, 1, 0, 0, 1), 1, new Standby.Leftovers(4, 5))))
        .containsExactly(
            "sessions left in a transaction: 4 (expected: 0)",
            "statements left running: 5 (expected: 0)");
  }

  @Test
  @DisplayName("3 s is kept, a millisecond more is broken; never back is broken")
  void bounds() {
    assertThat(broken(report(figures(9, 0, 3_000, 0, 0, 3_000), 3_000, NOTHING))).isEmpty();
    assertThat(broken(report(figures(9, 0, 3_001, 0, 0, 3_001), 3_001, NOTHING)))
        .containsExactly(
            "slowest read: 3001 ms (expected: at most 3000 ms)",
            "back on the reader after the thaw: 3001 ms (expected: at most 3000 ms)",
            "slowest write: 3001 ms (expected: at most 3000 ms)");
    assertThat(broken(report(figures(9, 0, 1, 0, 0, 1), -1, NOTHING)))
        .containsExactly("back on the reader after the thaw: never (expected: at most 3000 ms)");
  }

  @Test
  @DisplayName("goals that were missed, and the stock way's own figures, break nothing")
  void goals() {
    Map<Variant, Report> reports = new EnumMap<>(Variant.class);
    reports.put(
        Variant.STOCK, report(figures(9, 9, 18_000, 9, 9, 9_000), -1, new Standby.Leftovers(9, 9)));
    reports.put(Variant.TIMEBOUND, report(figures(9, 0, 1_150, 0, 0, 60), 67, NOTHING));
    ByteArrayOutputStream out = new ByteArrayOutputStream();

    Scenario.Outcome outcome =
        PgScenario.outcome(reports, new PrintStream(out, true, StandardCharsets.UTF_8));

    assertThat(outcome.broken()).isEmpty();
    assertThat(outcome.summary()).startsWith("slowest read 1.2 s instead of 18.0 s");
    assertThat(out.toString(StandardCharsets.UTF_8).lines())
        .anyMatch(line -> line.matches(" +missed +slowest read: 1150 ms .*"))
        .anyMatch(line -> line.matches(" +reached +back on the reader .*"));
  }

  @Test
  @DisplayName("the table has a column a variant, a line a figure and one a reason")
  void table() {
    Map<Variant, Report> reports = new EnumMap<>(Variant.class);
    reports.put(Variant.STOCK, report(figures(9, 0, 18_000, 7, 0, 1), 120, NOTHING));
    reports.put(Variant.TIMEBOUND, report(figures(9, 0, 1_150, 0, 0, 1), -1, NOTHING));

    assertThat(OutageTable.of(reports).lines().toList())
        .anyMatch(line -> line.matches("slowest read +18,000 ms +1,150 ms"))
        .anyMatch(line -> line.matches("answers older than 2 s +7 +0"))
        .anyMatch(line -> line.matches(" +for reader_stale +3 +3"))
        .anyMatch(line -> line.matches("back on the reader after the thaw +0\\.120 s +never"));
  }

  private static List<String> broken(Report report) {
    return Scenario.Outcome.of(Promise.result(report), Promise.of(report), "").broken();
  }

  private static Report report(Figures figures, long back, Standby.Leftovers leftovers) {
    return new Report(figures, Map.of("reader_stale", 3L), back, back, leftovers, 57);
  }

  private static Figures figures(
      long reads, long errors, long slowest, long stale, long writeErrors, long slowestWrite) {
    return new Figures(
        reads, errors, 1.5, 180, slowest, 0, 5, 4, 1, stale, 10, writeErrors, slowestWrite, "");
  }
}
