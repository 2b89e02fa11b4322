package dev.timebound.demo.bigtable;

import dev.timebound.demo.TextTable;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;

/** The reports of several variants side by side, one column each. */
final class StallTable {
  private final Map<Variant, StallReport> reports;
  private final TextTable table;

  private StallTable(Map<Variant, StallReport> reports) {
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
  static String of(Map<Variant, StallReport> reports) {
    StallTable it = new StallTable(reports);
    it.count("requests", f -> f.requests());
    it.count("errors", f -> f.errors());
    it.line("half of the reads within (p50)", r -> millis(r.figures().p50Millis()));
    it.line("99 of 100 within (p99)", r -> millis(r.figures().p99Millis()));
    it.line("999 of 1000 within (p99.9)", r -> millis(r.figures().p999Millis()));
    it.line("slowest read", r -> millis(r.figures().slowestMillis()));
    it.count("reads over 1 s", f -> f.overOneSecond());
    it.line("longest silence of an open scan", r -> millis(r.figures().silenceMillis()));
    it.count("rows received", f -> f.rows());
    it.count("rows lost", f -> f.lost());
    it.count("rows doubled", f -> f.doubled());
    it.count("rows wrong or out of order", f -> f.wrong());
    it.line("channels quarantined, restored", r -> r.quarantined() + ", " + r.restored());
    return it.table.toString();
  }

  private void count(String what, Function<LoadFigures, Long> figure) {
    line(what, r -> String.format(Locale.ROOT, "%,d", figure.apply(r.figures())));
  }

  private void line(String what, Function<StallReport, String> cell) {
    List<String> cells = reports.values().stream().map(cell).toList();
    String[] row = new String[cells.size() + 1];
    row[0] = what;
    for (int i = 0; i < cells.size(); i++) {
      row[i + 1] = cells.get(i);
    }
    table.row(row);
  }

  private static String millis(double millis) {
    return String.format(Locale.ROOT, millis < 100 ? "%,.1f ms" : "%,.0f ms", millis);
  }
}
