package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import dev.timebound.demo.pg.Table;
import dev.timebound.demo.pg.Variant;
import dev.timebound.test.PostgresReplicaSet;
import java.time.Duration;
import java.util.List;
import java.util.Locale;

/**
 * {@code pg-storm}: 500 reads at once on a reader's pool of 10 in the moment the reader freezes,
 * Timebound against an r2dbc-pool with a ping, an acquire timeout of 150 ms and the writer as
 * fallback. In turns; what counts is the median of the rounds' slowest read.
 */
final class PgStorm implements Benchmark {
  private static final int READS = 500;
  private static final String SLOWEST = "max_ms";

  @Override
  public String name() {
    return "pg-storm";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<Variant> contest = new Contest<>(List.of(Variant.TIMEBOUND, Variant.STOCK));
    int rounds = run.quick() ? 2 : 5;
    Duration frozen = Duration.ofSeconds(run.quick() ? 3 : 8);
    try (PostgresReplicaSet servers = PostgresReplicaSet.start()) {
      Table.create(servers.primary());
      servers.awaitReplay();
      contest.run(
          rounds,
          variant -> Storm.of(servers, variant, READS, frozen),
          (round, variant, figures) ->
              run.out()
                  .printf(
                      Locale.ROOT,
                      "  round %d of %d  %-20s slowest read %6.0f ms, writer's worst wait %5.0f ms,"
                          + " %.0f dials, %.0f torn down%n",
                      round,
                      rounds,
                      variant.label(),
                      figures.get(SLOWEST),
                      figures.get("wait_ms"),
                      figures.get("dials"),
                      figures.get("torn_down")));
    }
    print(run, contest, frozen);
    run.ratio(name(), contest.ratio(Variant.STOCK, Variant.TIMEBOUND, SLOWEST));
  }

  private static void print(BenchRun run, Contest<Variant> contest, Duration frozen) {
    TextTable table =
        new TextTable(
            "frozen for " + frozen.toSeconds() + " s",
            "slowest read\nmedian",
            "\nmin",
            "\nmax",
            "writer's worst wait\nmedian",
            "\nmin",
            "\nmax",
            "slowest write\nmedian",
            "dials\nmedian",
            "torn down\nmedian",
            "reads by the writer\nmedian",
            "errors");
    for (Variant variant : contest.contestants()) {
      String[] slowest = contest.of(variant, SLOWEST).cells("%.0f ms");
      String[] wait = contest.of(variant, "wait_ms").cells("%.0f ms");
      table.row(
          variant.label(),
          slowest[0],
          slowest[1],
          slowest[2],
          wait[0],
          wait[1],
          wait[2],
          contest.of(variant, "write_ms").cell("%.0f ms"),
          contest.of(variant, "dials").cell("%.0f"),
          contest.of(variant, "torn_down").cell("%.0f"),
          contest.of(variant, "by_writer").cell("%.0f"),
          String.format(Locale.ROOT, "%.0f", contest.of(variant, "errors").sum()));
    }
    run.out().println();
    run.out().println(table);
  }
}
