package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import dev.timebound.demo.bigtable.Variant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * {@code bigtable-stall}: the demo's stall on a fast server, Timebound against Google's client with
 * its pool of 10. Round by round in turn, each run in a fresh JVM; what counts is the median of the
 * rounds' slowest read, and of their longest silence of an open scan.
 */
final class BigtableStall implements Benchmark {
  private static final List<String> CLIENT = List.of("-Xms512m", "-Xmx512m", "-XX:+UseG1GC");
  private static final List<String> SERVER = List.of("-Xms768m", "-Xmx768m", "-XX:+UseSerialGC");
  private static final String SLOWEST = "max_ms";
  private static final String SILENCE = "silence_ms";

  @Override
  public String name() {
    return "bigtable-stall";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<Variant> contest = new Contest<>(List.of(Variant.TIMEBOUND, Variant.GOOGLE_POOL));
    int rounds = run.quick() ? 2 : 5;
    // seconds: warm-up, normal, stalled, after
    List<String> phases = run.quick() ? List.of("4", "1", "10", "2") : List.of("6", "2", "15", "4");
    try (Fork server = Fork.start(FastServer.class, SERVER, List.of(), line -> {})) {
      String port = server.ready();
      contest.run(
          rounds,
          variant -> Fork.run(StallMain.class, CLIENT, args(variant, port, phases), line -> {}),
          (round, variant, figures) ->
              run.out()
                  .printf(
                      Locale.ROOT,
                      "  round %d of %d  %-20s slowest read %6.0f ms, silence %6.0f ms,"
                          + " %.0f of %,.0f reads over 1 s%n",
                      round,
                      rounds,
                      variant.label(),
                      figures.get(SLOWEST),
                      figures.get(SILENCE),
                      figures.get("over_1s"),
                      figures.get("requests")));
    }
    print(run, contest);
    run.ratio(name(), contest.ratio(Variant.GOOGLE_POOL, Variant.TIMEBOUND, SLOWEST));
    run.ratio(name() + "-silence", contest.ratio(Variant.GOOGLE_POOL, Variant.TIMEBOUND, SILENCE));
  }

  private static List<String> args(Variant variant, String port, List<String> phases) {
    List<String> args = new ArrayList<>(List.of(variant.name(), port));
    args.addAll(phases);
    return args;
  }

  private static void print(BenchRun run, Contest<Variant> contest) {
    TextTable table =
        new TextTable(
            "",
            "slowest read\nmedian",
            "\nmin",
            "\nmax",
            "silence of a scan\nmedian",
            "\nmin",
            "\nmax",
            "p99\nmedian",
            "CPU a read\nmedian",
            "over 1 s\na run",
            "errors",
            "rows lost,\ndoubled, wrong");
    for (Variant variant : contest.contestants()) {
      String[] slowest = contest.of(variant, SLOWEST).cells("%.0f ms");
      String[] silence = contest.of(variant, SILENCE).cells("%.0f ms");
      table.row(
          variant.label(),
          slowest[0],
          slowest[1],
          slowest[2],
          silence[0],
          silence[1],
          silence[2],
          contest.of(variant, "p99_ms").cell("%.1f ms"),
          contest.of(variant, "cpu_us").cell("%.0f us"),
          contest.of(variant, "over_1s").cell("%.0f"),
          String.format(Locale.ROOT, "%.0f", contest.of(variant, "errors").sum()),
          String.format(Locale.ROOT, "%.0f", contest.of(variant, "bad_rows").sum()));
    }
    run.out().println();
    run.out().println(table);
  }
}
