package dev.timebound.demo.pg;

import dev.timebound.demo.Scenario;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresServer;
import java.io.PrintStream;
import java.util.EnumMap;
import java.util.List;
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
    if (timebound == null) {
      throw new IllegalArgumentException("reports: " + reports.keySet() + " (expected: all)");
    }
    out.println("What Timebound promises here:");
    tell(Promise.of(timebound), "held", "NOT HELD", out);
    tell(Promise.goals(timebound), "goal reached", "goal missed", out);
    return new Outcome(Promise.result(timebound), Promise.broken(timebound));
  }

  private static void tell(List<Promise.Part> parts, String held, String missed, PrintStream out) {
    parts.forEach(
        part -> out.printf(Locale.ROOT, "  %-12s %s%n", part.held() ? held : missed, part));
  }
}
