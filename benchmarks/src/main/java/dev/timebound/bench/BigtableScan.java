package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import java.util.List;
import java.util.Locale;

/**
 * {@code bigtable-scan}: client CPU per row of whole scans, rows of 1 cell and of 10 cells of 100
 * bytes, 10 rows a message. The server is in another JVM, with its replies made beforehand. Every
 * mode runs in a fresh JVM, the modes take turns, the median of the rounds counts.
 */
final class BigtableScan implements Benchmark {
  private static final List<String> CLIENT = List.of("-Xms512m", "-Xmx512m", "-XX:+UseG1GC");
  private static final List<String> SERVER = List.of("-Xms768m", "-Xmx768m", "-XX:+UseSerialGC");

  @Override
  public String name() {
    return "bigtable-scan";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    try (Fork server = Fork.start(FastServer.class, SERVER, List.of(), line -> {})) {
      String port = server.ready();
      Contest<ScanMode> narrow = measure(run, port, Replies.NARROW, 1);
      print(run, "rows of 1 cell of 100 bytes", narrow);
      Contest<ScanMode> wide = measure(run, port, Replies.WIDE, 10);
      print(run, "rows of 10 cells of 100 bytes", wide);
      ratio(run, "cpu-vs-google-async", narrow, ScanMode.GOOGLE_ASYNC);
      ratio(run, "wide-cpu-vs-google-async", wide, ScanMode.GOOGLE_ASYNC);
      ratio(run, "cpu-vs-google-iterator", narrow, ScanMode.GOOGLE_ITERATOR);
      ratio(run, "cpu-vs-raw", narrow, ScanMode.RAW);
      run.ratio(
          name() + "-alloc-vs-google",
          narrow.ratio(ScanMode.GOOGLE_ASYNC, ScanMode.TIMEBOUND, "bytes"));
    }
  }

  private static Contest<ScanMode> measure(BenchRun run, String port, String table, int cells)
      throws Exception {
    Contest<ScanMode> contest = new Contest<>(List.of(ScanMode.values()));
    int rounds = run.quick() ? 1 : 5;
    List<String> seconds = run.quick() ? List.of("4", "3") : List.of("6", "5");
    contest.run(
        rounds,
        mode ->
            Fork.run(
                ScanMain.class,
                CLIENT,
                List.of(
                    mode.name(),
                    table,
                    Integer.toString(cells),
                    port,
                    seconds.get(0),
                    seconds.get(1)),
                line -> {}),
        (round, mode, figures) ->
            run.out()
                .printf(
                    Locale.ROOT,
                    "  round %d of %d  %-31s %6.2f us CPU a row, %,.0f rows/s%n",
                    round,
                    rounds,
                    mode.title(),
                    figures.get("cpu_us"),
                    figures.get("rows_per_s")));
    return contest;
  }

  private static void print(BenchRun run, String what, Contest<ScanMode> contest) {
    TextTable table =
        new TextTable(
            what,
            "CPU a row\nmedian",
            "\nmin",
            "\nmax",
            "time a row\nmedian",
            "allocated\na row",
            "rows/s\nmedian");
    for (ScanMode mode : contest.contestants()) {
      String[] cpu = contest.of(mode, "cpu_us").cells("%.2f us");
      table.row(
          mode.title(),
          cpu[0],
          cpu[1],
          cpu[2],
          contest.of(mode, "wall_us").cell("%.2f us"),
          contest.of(mode, "bytes").cell("%,.0f B"),
          contest.of(mode, "rows_per_s").cell("%,.0f"));
    }
    run.out().println();
    run.out().println(table);
  }

  private void ratio(BenchRun run, String what, Contest<ScanMode> contest, ScanMode peer) {
    run.ratio(name() + "-" + what, contest.ratio(peer, ScanMode.TIMEBOUND, "cpu_us"));
  }
}
