package dev.timebound.demo.pg;

import dev.timebound.demo.TextTable;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Function;

/** The reports side by side, one column each. */
final class OutageTable {
  private final Map<Variant, Report> reports;
  private final TextTable table;

  private OutageTable(Map<Variant, Report> reports) {
    this.reports = reports;
    String[] heading = new String[reports.size() + 1];
    heading[0] = "";
    int i = 1;
    for (Variant variant : reports.keySet()) {
      heading[i++] = variant.title();
    }
    this.table = new TextTable(heading);
  }

  /** The map's order is the columns' order. */
  static String of(Map<Variant, Report> reports) {
    OutageTable it = new OutageTable(reports);
    it.count("reads", r -> r.figures().reads());
    it.count("errors", r -> r.figures().errors());
    it.line("half of the reads within (p50)", r -> millis(r.figures().p50Millis()));
    it.line("99 of 100 within (p99)", r -> millis(r.figures().p99Millis()));
    it.line("slowest read", r -> millis(r.figures().slowestMillis()));
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
            return count == null ? "" : number(count);
          });
    }
    it.count("reads left by their caller", r -> r.figures().left());
    it.count("writes", r -> r.figures().writes());
    it.count("writes that failed", r -> r.figures().writeErrors());
    it.line("slowest write", r -> millis(r.figures().slowestWriteMillis()));
    it.line("longest wait for the writer's pool", r -> millis(r.writerWaitMillis()));
    it.count("sessions left idle in transaction", r -> r.leftovers().idleInTransaction());
    it.count("statements left running", r -> r.leftovers().running());
    it.line("back on the reader after the thaw", r -> seconds(r.backMillis()));
    it.line("back on the reader after the restart", r -> seconds(r.backAfterRestartMillis()));
    return it.table.toString();
  }

  private void count(String what, Function<Report, Long> figure) {
    line(what, r -> number(figure.apply(r)));
  }

  private void line(String what, Function<Report, String> cell) {
    List<String> cells = reports.values().stream().map(cell).toList();
    String[] row = new String[cells.size() + 1];
    row[0] = what;
    for (int i = 0; i < cells.size(); i++) {
      row[i + 1] = cells.get(i);
    }
    table.row(row);
  }

  private static String number(long count) {
    return String.format(Locale.ROOT, "%,d", count);
  }

  private static String millis(double millis) {
    return String.format(Locale.ROOT, millis < 100 ? "%,.1f ms" : "%,.0f ms", millis);
  }

  private static String seconds(long millis) {
    return millis < 0 ? "never" : String.format(Locale.ROOT, "%.3f s", millis / 1e3);
  }
}
