package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import dev.timebound.test.FaultProxy;
import java.time.Duration;
import java.util.List;
import java.util.Locale;

/**
 * {@code bigtable-window}: what one channel carries at a round trip of 2 ms, by the size of its
 * stream window: scans of rows of 10 cells of 100 bytes, four at a time. No peer, and no ratio: a
 * table to choose the setting by.
 */
final class BigtableWindow implements Benchmark {
  private static final List<String> CLIENT = List.of("-Xms512m", "-Xmx512m", "-XX:+UseG1GC");
  private static final List<String> SERVER = List.of("-Xms768m", "-Xmx768m", "-XX:+UseSerialGC");
  private static final List<Integer> WINDOWS_KIB = List.of(256, 1024, 4096);
  private static final Duration ONE_WAY = Duration.ofMillis(1);

  @Override
  public String name() {
    return "bigtable-window";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<Integer> contest = new Contest<>(WINDOWS_KIB);
    int rounds = run.quick() ? 1 : 3;
    List<String> seconds = run.quick() ? List.of("3", "3") : List.of("5", "5");
    try (Fork server = Fork.start(FastServer.class, SERVER, List.of(), line -> {});
        FaultProxy proxy = FaultProxy.to("localhost", Integer.parseInt(server.ready()))) {
      proxy.delay(ONE_WAY);
      contest.run(
          rounds,
          kib ->
              Fork.run(
                  WindowMain.class,
                  CLIENT,
                  List.of(
                      Integer.toString(kib << 10),
                      Integer.toString(proxy.port()),
                      seconds.get(0),
                      seconds.get(1)),
                  line -> {}),
          (round, kib, figures) ->
              run.out()
                  .printf(
                      Locale.ROOT,
                      "  round %d of %d  %,5d KiB  %6.1f MB/s%n",
                      round,
                      rounds,
                      kib,
                      figures.get("mb_per_s")));
    }
    TextTable table =
        new TextTable("one channel, 2 ms round trip", "MB/s\nmedian", "\nmin", "\nmax");
    for (Integer kib : WINDOWS_KIB) {
      String[] rate = contest.of(kib, "mb_per_s").cells("%.1f");
      table.row(kib + " KiB", rate[0], rate[1], rate[2]);
    }
    run.out().println();
    run.out().println(table);
  }
}
