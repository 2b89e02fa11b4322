package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import java.util.List;
import java.util.Locale;

/**
 * {@code cas-read}: verified reads of a blob of 64 MiB, in messages of 1 MiB and of 64 KiB, beside
 * a raw ClientCall with the same SHA-256 in it and beside StreamObserver code as Bazel has it. The
 * server is in another JVM, with its messages made beforehand. Every mode runs in a fresh JVM, the
 * modes take turns, the median of the rounds counts.
 */
final class CasRead implements Benchmark {
  /**
   * Regions that make nothing humongous of a message of 1 MiB: else the peers, which copy it whole,
   * pay for G1.
   */
  private static final List<String> CLIENT =
      List.of("-Xms512m", "-Xmx512m", "-XX:+UseG1GC", "-XX:G1HeapRegionSize=8m");

  static final List<String> SERVER = List.of("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC");
  private static final String SPEED = "mb_per_s";

  @Override
  public String name() {
    return "cas-read";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    try (Fork server = Fork.start(CasFastServer.class, SERVER, List.of(), line -> {})) {
      String port = server.ready();
      Contest<CasReadMode> mib = measure(run, port, CasReplies.MIB);
      print(run, "messages of 1 MiB", mib);
      Contest<CasReadMode> kib = measure(run, port, CasReplies.KIB_64);
      print(run, "messages of 64 KiB", kib);
      ratio(run, "", mib, CasReadMode.RAW);
      ratio(run, "-64k", kib, CasReadMode.RAW);
      ratio(run, "-vs-observer", mib, CasReadMode.OBSERVER);
      ratio(run, "-64k-vs-observer", kib, CasReadMode.OBSERVER);
    }
  }

  private static Contest<CasReadMode> measure(BenchRun run, String port, String instance)
      throws Exception {
    Contest<CasReadMode> contest = new Contest<>(List.of(CasReadMode.values()));
    int rounds = run.quick() ? 1 : 5;
    List<String> seconds = run.quick() ? List.of("3", "3") : List.of("5", "5");
    contest.run(
        rounds,
        mode ->
            Fork.run(
                CasReadMain.class,
                CLIENT,
                List.of(mode.name(), instance, port, seconds.get(0), seconds.get(1)),
                line -> {}),
        (round, mode, figures) ->
            run.out()
                .printf(
                    Locale.ROOT,
                    "  round %d of %d  %-34s %,6.0f MB/s, %.2f ns CPU a byte%n",
                    round,
                    rounds,
                    mode.title(),
                    figures.get(SPEED),
                    figures.get("cpu_ns")));
    return contest;
  }

  private static void print(BenchRun run, String what, Contest<CasReadMode> contest) {
    TextTable table =
        new TextTable(
            what, "MB/s\nmedian", "\nmin", "\nmax", "CPU a byte\nmedian", "allocated\na byte");
    for (CasReadMode mode : contest.contestants()) {
      String[] speed = contest.of(mode, SPEED).cells("%,.0f");
      table.row(
          mode.title(),
          speed[0],
          speed[1],
          speed[2],
          contest.of(mode, "cpu_ns").cell("%.2f ns"),
          contest.of(mode, "allocated").cell("%.2f B"));
    }
    run.out().println();
    run.out().println(table);
  }

  private void ratio(BenchRun run, String what, Contest<CasReadMode> contest, CasReadMode peer) {
    // more is better here: ours above, the peer's below
    run.ratio(name() + what, contest.ratio(CasReadMode.TIMEBOUND, peer, SPEED));
  }
}
