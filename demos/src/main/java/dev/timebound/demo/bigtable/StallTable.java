package dev.timebound.demo.bigtable;

import dev.timebound.demo.Figure;
import dev.timebound.demo.SideBySide;
import java.util.Map;

/** The reports of several variants side by side, one column each. */
final class StallTable {
  private StallTable() {}

  /** The map's order is the columns' order. */
  static String of(Map<Variant, StallReport> reports) {
    SideBySide<StallReport> it = SideBySide.of(reports, Variant::title);
    it.count("requests", r -> r.figures().requests());
    it.count("errors", r -> r.figures().errors());
    it.line("half of the reads within (p50)", r -> Figure.millis(r.figures().p50Millis()));
    it.line("99 of 100 within (p99)", r -> Figure.millis(r.figures().p99Millis()));
    it.line("999 of 1000 within (p99.9)", r -> Figure.millis(r.figures().p999Millis()));
    it.line("slowest read", r -> Figure.millis(r.figures().slowestMillis()));
    it.count("reads over 1 s", r -> r.figures().overOneSecond());
    it.line("longest silence of an open scan", r -> Figure.millis(r.figures().silenceMillis()));
    it.count("rows received", r -> r.figures().rows());
    it.count("rows lost", r -> r.figures().lost());
    it.count("rows doubled", r -> r.figures().doubled());
    it.count("rows wrong or out of order", r -> r.figures().wrong());
    it.line("channels quarantined, restored", r -> r.quarantined() + ", " + r.restored());
    return it.toString();
  }
}
