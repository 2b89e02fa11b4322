package dev.timebound.demo.pg;

import dev.timebound.demo.Figure;
import dev.timebound.demo.SideBySide;
import java.util.Map;
import java.util.TreeSet;

/** The reports side by side, one column each. */
final class OutageTable {
  private OutageTable() {}

  /** The map's order is the columns' order. */
  static String of(Map<Variant, Report> reports) {
    SideBySide<Report> it = SideBySide.of(reports, Variant::title);
    it.count("reads", r -> r.figures().reads());
    it.count("errors", r -> r.figures().errors());
    it.line("half of the reads within (p50)", r -> Figure.millis(r.figures().p50Millis()));
    it.line("99 of 100 within (p99)", r -> Figure.millis(r.figures().p99Millis()));
    it.line("slowest read", r -> Figure.millis(r.figures().slowestMillis()));
    it.count("reads over 3 s", r -> r.figures().overThreeSeconds());
    it.count("answers older than 2 s", r -> r.figures().stale());
    it.count("served by the reader", r -> r.figures().byReader());
    it.count("served by the writer", r -> r.figures().byWriter());
    TreeSet<String> reasons = new TreeSet<>();
    reports.values().forEach(report -> reasons.addAll(report.writerReasons().keySet()));
    for (String reason : reasons) {
      it.line(
          "  for " + reason,
          r -> {
            Long count = r.writerReasons().get(reason);
            return count == null ? "" : Figure.number(count);
          });
    }
    it.count("reads left by their caller", r -> r.figures().left());
    it.count("writes", r -> r.figures().writes());
    it.count("writes that failed", r -> r.figures().writeErrors());
    it.line("slowest write", r -> Figure.millis(r.figures().slowestWriteMillis()));
    it.line("longest wait for the writer's pool", r -> Figure.millis(r.writerWaitMillis()));
    it.count("sessions left idle in transaction", r -> r.leftovers().idleInTransaction());
    it.count("statements left running", r -> r.leftovers().running());
    it.line("back on the reader after the thaw", r -> Figure.seconds(r.backMillis()));
    it.line(
        "back on the reader after the restart", r -> Figure.seconds(r.backAfterRestartMillis()));
    return it.toString();
  }
}
