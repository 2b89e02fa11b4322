package dev.timebound.demo.cas;

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
    it.count("calls", r -> r.figures().calls());
    it.count("not answered 5 s after their deadline", r -> r.figures().unanswered());
    TreeSet<String> statuses = new TreeSet<>();
    reports.values().forEach(report -> statuses.addAll(report.figures().errors().keySet()));
    it.count(
        "errors", r -> r.figures().errors().values().stream().mapToLong(Long::longValue).sum());
    for (String status : statuses) {
      it.count("  " + status, r -> r.figures().errors().getOrDefault(status, 0L));
    }
    it.line("half of the calls within (p50)", r -> Figure.millis(r.figures().p50Millis()));
    it.line("99 of 100 within (p99)", r -> Figure.millis(r.figures().p99Millis()));
    it.line("slowest call", r -> Figure.millis(r.figures().slowestMillis()));
    it.count("reads of mirrored blobs", r -> r.figures().mirroredReads());
    it.count("  of these failed", r -> r.figures().failedMirroredReads());
    it.count("keys answered UNKNOWN", r -> r.figures().unknownKeys());
    it.count("wrong bytes or answers", r -> r.figures().wrong());
    it.count("blobs said to be missing that are there", r -> r.figures().falseMissing());
    it.count("reads that waited for the frozen shard, at first", r -> (long) r.frozenEarly());
    it.count("  and later on", r -> (long) r.frozenLate());
    it.line(
        "first byte later by, once the shard is known",
        r -> r.addedFirstByteMillis() < 0 ? "-" : Figure.millis(r.addedFirstByteMillis()));
    it.line("killed shard serves its own keys after", r -> Figure.seconds(r.backAfterKillMillis()));
    it.line(
        "frozen shard serves its own keys after", r -> Figure.seconds(r.backAfterFreezeMillis()));
    return it.toString();
  }
}
