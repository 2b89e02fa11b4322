package dev.timebound.demo.fetch;

import dev.timebound.demo.Figure;
import dev.timebound.demo.TextTable;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What came of each variant, a line for each of its clients. */
final class StallTable {
  private StallTable() {}

  /** The map's order is the lines' order. */
  static String of(Map<Variant, Map<Client, Figures>> reports) {
    TextTable table =
        new TextTable(
            "",
            "records of\npartition 0",
            "\nof 1",
            "\nof 2",
            "healthy\na second",
            "\nrounds",
            "a round\ntook",
            "of it lost\nto the stall",
            "reads\nabandoned",
            "cancelled on\nthe server",
            "statements\nleft running");
    reports.forEach(
        (variant, report) ->
            report.forEach(
                (client, figures) -> {
                  Figures well = reports.getOrDefault(Variant.UNSTALLED, Map.of()).get(client);
                  Rounds.Figures rounds = figures.rounds();
                  table.row(
                      variant.title() + ", " + client.title(),
                      Figure.number(figures.received().get(0)),
                      Figure.number(figures.received().get(1)),
                      Figure.number(figures.received().get(2)),
                      Figure.number(Math.round(figures.healthyPerSecond())),
                      Figure.number(rounds.ended()),
                      rounds.ended() == 0 ? "never ended" : Figure.millis(rounds.meanMillis()),
                      lost(variant, rounds, well),
                      Figure.number(figures.abandoned()),
                      Figure.number(figures.cancelled()),
                      Figure.number(figures.leftRunning()));
                }));
    return table.toString();
  }

  /** Beside the same client's rounds without a stall. */
  private static String lost(Variant variant, Rounds.Figures rounds, @Nullable Figures well) {
    if (!variant.stalls() || well == null) {
      return "";
    }
    return rounds.ended() == 0
        ? "all"
        : Figure.millis(Math.max(0, rounds.meanMillis() - well.rounds().meanMillis()));
  }
}
