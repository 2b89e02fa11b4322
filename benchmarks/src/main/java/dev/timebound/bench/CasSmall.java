package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import java.util.List;
import java.util.Locale;

/**
 * {@code cas-small}: 10,000 blobs of 1 KiB through {@code readMany}, beside a stream for each. The
 * server is in another JVM. Every mode runs in a fresh JVM, the modes take turns, the median of the
 * rounds counts.
 */
final class CasSmall implements Benchmark {
  private static final List<String> CLIENT = List.of("-Xms512m", "-Xmx512m", "-XX:+UseG1GC");
  private static final String SPEED = "blobs_per_s";

  @Override
  public String name() {
    return "cas-small";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<CasSmallMode> contest = new Contest<>(List.of(CasSmallMode.values()));
    int rounds = run.quick() ? 1 : 5;
    List<String> seconds = run.quick() ? List.of("4", "3") : List.of("6", "5");
    try (Fork server = Fork.start(CasFastServer.class, CasRead.SERVER, List.of(), line -> {})) {
      String port = server.ready();
      contest.run(
          rounds,
          mode ->
              Fork.run(
                  CasSmallMain.class,
                  CLIENT,
                  List.of(mode.name(), port, seconds.get(0), seconds.get(1)),
                  line -> {}),
          (round, mode, figures) ->
              run.out()
                  .printf(
                      Locale.ROOT,
                      "  round %d of %d  %-32s %,9.0f blobs/s, %6.2f us CPU a blob%n",
                      round,
                      rounds,
                      mode.title(),
                      figures.get(SPEED),
                      figures.get("cpu_us")));
    }
    print(run, contest);
    // more is better here: ours above, the peer's below
    run.ratio(name(), contest.ratio(CasSmallMode.READ_MANY, CasSmallMode.STREAMS, SPEED));
    run.ratio(
        name() + "-cpu", contest.ratio(CasSmallMode.STREAMS, CasSmallMode.READ_MANY, "cpu_us"));
    run.ratio(name() + "-vs-ring", contest.ratio(CasSmallMode.READ_MANY, CasSmallMode.RING, SPEED));
  }

  private static void print(BenchRun run, Contest<CasSmallMode> contest) {
    TextTable table =
        new TextTable(
            "blobs of 1 KiB",
            "blobs/s\nmedian",
            "\nmin",
            "\nmax",
            "CPU a blob\nmedian",
            "allocated\na blob");
    for (CasSmallMode mode : contest.contestants()) {
      String[] speed = contest.of(mode, SPEED).cells("%,.0f");
      table.row(
          mode.title(),
          speed[0],
          speed[1],
          speed[2],
          contest.of(mode, "cpu_us").cell("%.2f us"),
          contest.of(mode, "allocated").cell("%,.0f B"));
    }
    run.out().println();
    run.out().println(table);
  }
}
