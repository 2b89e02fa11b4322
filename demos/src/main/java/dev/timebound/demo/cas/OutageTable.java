package dev.timebound.demo.cas;

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
    it.count("calls", r -> r.figures().calls());
    it.count("not answered 5 s after their deadline", r -> r.figures().unanswered());
    TreeSet<String> statuses = new TreeSet<>();
    reports.values().forEach(report -> statuses.addAll(report.figures().errors().keySet()));
    it.count(
        "errors", r -> r.figures().errors().values().stream().mapToLong(Long::longValue).sum());
    for (String status : statuses) {
      it.count("  " + status, r -> r.figures().errors().getOrDefault(status, 0L));
    }
    it.line("half of the calls within (p50)", r -> millis(r.figures().p50Millis()));
    it.line("99 of 100 within (p99)", r -> millis(r.figures().p99Millis()));
    it.line("slowest call", r -> millis(r.figures().slowestMillis()));
    it.count("reads of mirrored blobs", r -> r.figures().mirroredReads());
    it.count("  of these failed", r -> r.figures().failedMirroredReads());
    it.count("keys answered UNKNOWN", r -> r.figures().unknownKeys());
    it.count("wrong bytes or answers", r -> r.figures().wrong());
    it.count("blobs said to be missing that are there", r -> r.figures().falseMissing());
    it.count("reads that waited for the frozen shard, at first", r -> (long) r.frozenEarly());
    it.count("  and later on", r -> (long) r.frozenLate());
    it.line(
        "first byte later by, once the shard is known",
        r -> r.addedFirstByteMillis() < 0 ? "-" : millis(r.addedFirstByteMillis()));
    it.line("killed shard serves its own keys after", r -> seconds(r.backAfterKillMillis()));
    it.line("frozen shard serves its own keys after", r -> seconds(r.backAfterFreezeMillis()));
    return it.table.toString();
  }

  private void count(String what, Function<Report, Long> figure) {
    line(what, r -> String.format(Locale.ROOT, "%,d", figure.apply(r)));
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

  private static String millis(double millis) {
    return String.format(Locale.ROOT, millis < 100 ? "%,.1f ms" : "%,.0f ms", millis);
  }

  private static String seconds(long millis) {
    return millis < 0 ? "never" : String.format(Locale.ROOT, "%.3f s", millis / 1e3);
  }
}
