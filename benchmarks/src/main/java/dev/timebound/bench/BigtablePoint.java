package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import java.util.List;
import java.util.Locale;

/**
 * {@code bigtable-point}: client CPU of a read of one row of 100 bytes, 64 of them under way at a
 * time, against Google's {@code readRowAsync}. The server is in another JVM, with its replies made
 * beforehand. Every mode runs in a fresh JVM, the modes take turns, the median of the rounds
 * counts.
 */
final class BigtablePoint implements Benchmark {
  private static final List<String> CLIENT = List.of("-Xms512m", "-Xmx512m", "-XX:+UseG1GC");
  private static final List<String> SERVER = List.of("-Xms768m", "-Xmx768m", "-XX:+UseSerialGC");

  @Override
  public String name() {
    return "bigtable-point";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<PointMode> contest = new Contest<>(List.of(PointMode.values()));
    int rounds = run.quick() ? 1 : 5;
    List<String> seconds = run.quick() ? List.of("6", "4") : List.of("10", "6");
    try (Fork server = Fork.start(FastServer.class, SERVER, List.of(), line -> {})) {
      String port = server.ready();
      contest.run(
          rounds,
          mode ->
              Fork.run(
                  PointMain.class,
                  CLIENT,
                  List.of(mode.name(), port, seconds.get(0), seconds.get(1)),
                  line -> {}),
          (round, mode, figures) ->
              run.out()
                  .printf(
                      Locale.ROOT,
                      "  round %d of %d  %-31s %6.1f us CPU a read, %,.0f reads/s%n",
                      round,
                      rounds,
                      mode.title(),
                      figures.get("cpu_us"),
                      figures.get("reads_per_s")));
    }
    print(run, contest);
    run.ratio(name(), contest.ratio(PointMode.GOOGLE, PointMode.TIMEBOUND, "cpu_us"));
  }

  private static void print(BenchRun run, Contest<PointMode> contest) {
    TextTable table =
        new TextTable(
            "one row, " + PointMain.IN_FLIGHT + " reads at a time",
            "CPU a read\nmedian",
            "\nmin",
            "\nmax",
            "p50\nmedian",
            "p99\nmedian",
            "allocated\na read",
            "reads/s\nmedian");
    for (PointMode mode : contest.contestants()) {
      String[] cpu = contest.of(mode, "cpu_us").cells("%.1f us");
      table.row(
          mode.title(),
          cpu[0],
          cpu[1],
          cpu[2],
          contest.of(mode, "p50_us").cell("%,.0f us"),
          contest.of(mode, "p99_us").cell("%,.0f us"),
          contest.of(mode, "bytes").cell("%,.0f B"),
          contest.of(mode, "reads_per_s").cell("%,.0f"));
    }
    run.out().println();
    run.out().println(table);
  }
}
