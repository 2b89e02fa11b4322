package dev.timebound.demo.fetch;

import dev.timebound.demo.Scenario;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Unchanged Kafka clients read three partitions of which one stalls in Postgres: with nothing
 * shared, halving and parallel, one after the other, all else equal.
 */
public final class FetchScenario implements Scenario {
  private static final Backlog BACKLOG = new Backlog(1_000, 60_000);
  private static final Backlog QUICK_BACKLOG = new Backlog(300, 24_000);

  @Override
  public String name() {
    return "fetch";
  }

  @Override
  public Outcome run(boolean quick, PrintStream out) throws Exception {
    Phases phases = quick ? Phases.quick() : Phases.full();
    Backlog backlog = quick ? QUICK_BACKLOG : BACKLOG;
    List<Client> clients =
        KcatClient.isInstalled() ? List.of(Client.values()) : List.of(Client.JAVA);
    out.println("Fetch: what unchanged Kafka clients get of three partitions of which one stalls");
    out.println(
        "  Promised of Timebound: the healthy partitions move on in every round with halving, and"
            + " at "
            + Promise.LEAST_PERCENT
            + "% of their speed or more with parallel; nothing is lost, doubled or left running");
    if (!clients.contains(Client.KCAT)) {
      out.println("  kcat is not installed (Debian: apt-get install kcat): the Java client alone");
    }
    Map<Variant, Map<Client, Figures>> reports = new EnumMap<>(Variant.class);
    try (PgDatabase database = PgDatabase.start(backlog)) {
      out.println(
          "  Postgres on port "
              + database.port()
              + ", "
              + PgDatabase.DELAY.toMillis()
              + " ms away each way; records of "
              + Backlog.RECORD_BYTES
              + " bytes: "
              + backlog.stalledRecords()
              + " in partition 0, "
              + backlog.healthyRecords()
              + " in each of the others");
      out.println("  Rehearsal for " + phases.rehearsal() + " s, not counted");
      rehearse(clients, database, phases);
      for (Variant variant : Variant.values()) {
        out.println("  " + variant.title());
        reports.put(
            variant,
            new StallRun(variant, sides(clients, variant, database), database, phases, backlog, out)
                .run());
      }
    }
    out.println();
    out.println(StallTable.of(reports));
    return outcome(new Promise(reports, backlog), out);
  }

  private static List<Side> sides(List<Client> clients, Variant variant, PgDatabase database) {
    List<Side> sides = new ArrayList<>();
    clients.forEach(client -> sides.add(GatewaySide.open(client, variant, database)));
    return sides;
  }

  private static void rehearse(List<Client> clients, PgDatabase database, Phases phases)
      throws Exception {
    List<Side> sides = sides(clients, Variant.UNSTALLED, database);
    for (Side side : sides) {
      side.start();
    }
    TimeUnit.SECONDS.sleep(phases.rehearsal());
    for (Side side : sides) {
      side.close();
    }
  }

  static Outcome outcome(Promise promise, PrintStream out) {
    Scenario.tellGoals(promise.goals(), out);
    return Outcome.of(promise.result(), promise.parts(), promise.summary());
  }
}
