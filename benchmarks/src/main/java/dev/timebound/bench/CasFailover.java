package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import java.util.List;
import java.util.Locale;

/**
 * {@code cas-failover}: the time to the first byte of a small blob that two shards have, with its
 * home frozen and known to be, beside the same with its home healthy. Each run is a fresh JVM, they
 * take turns, the median of the rounds counts.
 */
final class CasFailover implements Benchmark {
  private static final List<String> CLIENT = List.of("-Xms256m", "-Xmx256m", "-XX:+UseG1GC");
  private static final String MEDIAN = "p50_us";

  @Override
  public String name() {
    return "cas-failover";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<String> contest =
        new Contest<>(List.of(CasFailoverMain.SUSPECT, CasFailoverMain.HEALTHY));
    int rounds = run.quick() ? 1 : 5;
    String reads = run.quick() ? "5000" : "20000";
    try (Fork first = Fork.start(CasFastServer.class, CasRead.SERVER, List.of(), line -> {});
        Fork second = Fork.start(CasFastServer.class, CasRead.SERVER, List.of(), line -> {})) {
      List<String> ports = List.of(first.ready(), second.ready());
      contest.run(
          rounds,
          mode ->
              Fork.run(
                  CasFailoverMain.class,
                  CLIENT,
                  List.of(mode, ports.get(0), ports.get(1), reads),
                  line -> {}),
          (round, mode, figures) ->
              run.out()
                  .printf(
                      Locale.ROOT,
                      "  round %d of %d  home %-8s first byte after %4.0f us (p50), %4.0f us"
                          + " (p99)%n",
                      round,
                      rounds,
                      mode,
                      figures.get(MEDIAN),
                      figures.get("p99_us")));
    }
    TextTable table = new TextTable("home", "first byte\np50", "\nmin", "\nmax", "p99");
    for (String mode : contest.contestants()) {
      String[] median = contest.of(mode, MEDIAN).cells("%.0f us");
      table.row(mode, median[0], median[1], median[2], contest.of(mode, "p99_us").cell("%.0f us"));
    }
    run.out().println();
    run.out().println(table);
    run.out()
        .printf(
            Locale.ROOT,
            "  a suspect home adds %.2f ms to the median first byte (aimed at: under 5)%n",
            (contest.of(CasFailoverMain.SUSPECT, MEDIAN).median()
                    - contest.of(CasFailoverMain.HEALTHY, MEDIAN).median())
                / 1e3);
    run.ratio(name(), contest.ratio(CasFailoverMain.HEALTHY, CasFailoverMain.SUSPECT, MEDIAN));
  }
}
