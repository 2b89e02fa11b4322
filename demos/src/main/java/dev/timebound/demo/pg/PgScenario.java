package dev.timebound.demo.pg;

import dev.timebound.demo.Scenario;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresServer;
import java.io.PrintStream;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;

/**
 * Reads of a Postgres standby, and writes beside them, while the standby freezes, falls behind and
 * dies: the stock way and Timebound, one after the other, against real servers, under the same load
 * and the same faults.
 */
public final class PgScenario implements Scenario {

  @Override
  public String name() {
    return "pg";
  }

  @Override
  public Outcome run(boolean quick, PrintStream out) throws Exception {
    Phases phases = quick ? Phases.quick() : Phases.full();
    LoadPlan plan = LoadPlan.standard();
    out.println(
        "Postgres: what readers see of a standby that freezes for "
            + phases.frozen()
            + " s, falls behind, and dies");
    out.println(
        "  Promised of Timebound: no read fails, none takes more than "
            + Promise.LONGEST_MILLIS / 1_000
            + " s, reads are back within "
            + Promise.LONGEST_MILLIS / 1_000
            + " s of the thaw, nothing is left on the servers, writes go on");
    Map<Variant, Report> reports = new EnumMap<>(Variant.class);
    try (PostgresReplicaSet servers = PostgresReplicaSet.start()) {
      Table.create(servers.primary());
      servers.awaitReplay();
      out.println(
          "  Primary on port "
              + servers.primary().port()
              + ", standby on port "
              + servers.standby().port());
      out.println("  Load: " + plan);
      for (Variant variant : Variant.values()) {
        out.println("  " + variant.label());
        reports.put(variant, run(variant, servers, plan, phases, out));
      }
    }
    out.println();
    out.println(OutageTable.of(reports));
    return outcome(reports, out);
  }

  private static Report run(
      Variant variant, PostgresReplicaSet servers, LoadPlan plan, Phases phases, PrintStream out)
      throws InterruptedException {
    String application = "demo-" + variant.name().toLowerCase(Locale.ROOT);
    PostgresServer primary = servers.primary();
    primary.execute("UPDATE demo_pulse SET number = 0");
    servers.awaitReplay();
    Servers where =
        new Servers(
            primary.port(),
            servers.standby().port(),
            primary.user(),
            primary.database(),
            application);
    try (ReadWriteClient client = variant.connect(where)) {
      return new OutageRun(client, new RealStandby(servers, application), plan, phases, out).run();
    } finally {
      servers.heal();
    }
  }

  static Outcome outcome(Map<Variant, Report> reports, PrintStream out) {
    Report timebound = reports.get(Variant.TIMEBOUND);
    Report stock = reports.get(Variant.STOCK);
    if (timebound == null || stock == null) {
      throw new IllegalArgumentException("reports: " + reports.keySet() + " (expected: all)");
    }
    told(timebound.figures().firstError(), "Timebound's", out);
    told(stock.figures().firstError(), "r2dbc-pool's", out);
    Scenario.tellGoals(Promise.goals(timebound), out);
    return Outcome.of(
        Promise.result(timebound), Promise.of(timebound), Promise.summary(timebound, stock));
  }

  private static void told(String error, String whose, PrintStream out) {
    if (!error.isEmpty()) {
      out.println(whose + " first error: " + error);
    }
  }
}
