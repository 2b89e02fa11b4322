package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import dev.timebound.demo.pg.Table;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import java.time.Duration;
import java.util.List;
import java.util.Locale;

/**
 * What the read benchmarks share: a real primary and standby, the modes in turn, each in a fresh
 * JVM that reads one row after the other, straight or through a proxy with a delay.
 */
final class PgReads implements AutoCloseable {
  static final String P50 = "p50_us";
  private static final List<String> CLIENT = List.of("-Xms512m", "-Xmx512m", "-XX:+UseG1GC");

  private final BenchRun run;
  private final PostgresReplicaSet servers = PostgresReplicaSet.start();

  PgReads(BenchRun run) {
    this.run = run;
    Table.create(servers.primary());
    servers.awaitReplay();
  }

  /** Straight to the standby. */
  Contest<PgMode> direct(List<PgMode> modes) throws Exception {
    Contest<PgMode> contest = new Contest<>(modes);
    contest.run(rounds(), mode -> fork(mode, servers.standby().port()), this::told);
    print("on loopback", contest);
    return contest;
  }

  /** Through a proxy with that delay each way, which counts the round trips too. */
  Contest<PgMode> delayed(List<PgMode> modes, Duration oneWay) throws Exception {
    Contest<PgMode> contest = new Contest<>(modes);
    try (FaultProxy proxy = servers.standby().proxy()) {
      proxy.delay(oneWay);
      contest.run(
          rounds(),
          mode -> {
            long before = proxy.roundTrips();
            Figures figures = fork(mode, proxy.port());
            double trips = proxy.roundTrips() - before;
            return figures.with("trips", trips / figures.get("all_reads"));
          },
          this::told);
    }
    print(oneWay.toMillis() + " ms each way", contest);
    return contest;
  }

  private int rounds() {
    return run.quick() ? 2 : 5;
  }

  private Figures fork(PgMode mode, int readerPort) throws Exception {
    List<String> args =
        List.of(
            mode.name(),
            Integer.toString(servers.primary().port()),
            Integer.toString(readerPort),
            servers.primary().user(),
            servers.primary().database(),
            run.quick() ? "10" : "15",
            run.quick() ? "3" : "5");
    return Fork.run(PgReadMain.class, CLIENT, args, line -> {});
  }

  private void told(int round, PgMode mode, Figures figures) {
    run.out()
        .printf(
            Locale.ROOT,
            "  round %d of %d  %-31s p50 %6.0f us, %6.0f us CPU a read%n",
            round,
            rounds(),
            mode.title(),
            figures.get(P50),
            figures.get("cpu_us"));
  }

  private void print(String where, Contest<PgMode> contest) {
    TextTable table =
        new TextTable(
            where,
            "p50 of a read\nmedian",
            "\nmin",
            "\nmax",
            "p99\nmedian",
            "CPU a read\nmedian",
            "\nmin",
            "\nmax",
            "allocated\na read",
            "round trips\na read");
    for (PgMode mode : contest.contestants()) {
      String[] p50 = contest.of(mode, P50).cells("%.0f us");
      String[] cpu = contest.of(mode, "cpu_us").cells("%.0f us");
      double trips = contest.of(mode, "trips").median();
      table.row(
          mode.title(),
          p50[0],
          p50[1],
          p50[2],
          contest.of(mode, "p99_us").cell("%.0f us"),
          cpu[0],
          cpu[1],
          cpu[2],
          contest.of(mode, "bytes").cell("%,.0f B"),
          Double.isNaN(trips) ? "" : String.format(Locale.ROOT, "%.1f", trips));
    }
    run.out().println();
    run.out().println(table);
  }

  @Override
  public void close() {
    servers.close();
  }
}
