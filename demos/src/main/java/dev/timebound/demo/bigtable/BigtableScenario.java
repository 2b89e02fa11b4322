package dev.timebound.demo.bigtable;

import com.google.bigtable.v2.MutateRowsRequest;
import com.google.bigtable.v2.Mutation;
import com.google.protobuf.ByteString;
import dev.timebound.demo.Scenario;
import dev.timebound.test.BigtableEmulator;
import dev.timebound.test.BigtableTable;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * Reads of Bigtable while one of the connections stalls: Google's Java client and Timebound, one
 * after the other, against the real emulator, under the same load and the same stall.
 */
public final class BigtableScenario implements Scenario {
  static final int ROWS = 20_000;

  private static final String PROJECT = "timebound";
  private static final String INSTANCE = "test";
  private static final String TABLE = "demo";

  @Override
  public String name() {
    return "bigtable";
  }

  @Override
  public Outcome run(boolean quick, PrintStream out) throws Exception {
    Phases phases = quick ? Phases.quick() : Phases.full();
    LoadPlan plan = LoadPlan.forEmulator();
    DemoTable table = new DemoTable(ROWS);
    out.println("Bigtable: what readers see of one connection that stalls for 10 s");
    out.println(
        "  Promised of Timebound: no read fails, no row is lost, doubled or wrong, none waits more"
            + " than "
            + Promise.LONGEST_MILLIS / 1_000
            + " s");
    try (BigtableEmulator emulator = BigtableEmulator.start()) {
      BigtableTable stored = emulator.createTable(TABLE, DemoTable.FAMILY);
      long loaded = stored.load(IntStream.range(0, ROWS).mapToObj(i -> entry(table, i)));
      out.println("  Google's emulator on port " + emulator.port() + ", " + loaded + " rows");
      out.println("  Load: " + plan + "; " + StallTrial.DELAY.toMillis() + " ms each way");
      Map<Variant, StallReport> reports = new EnumMap<>(Variant.class);
      Target server = new Target(emulator.port(), PROJECT, INSTANCE, TABLE);
      StallTrial trial = new StallTrial(server, table, plan, phases, out);
      int rehearsal = quick ? 3 : 5;
      out.println("  Rehearsal of each client for " + rehearsal + " s, not counted");
      for (Variant variant : Variant.values()) {
        trial.rehearse(variant, rehearsal);
      }
      for (Variant variant : Variant.values()) {
        out.println("  " + variant.label());
        reports.put(variant, trial.run(variant));
      }
      out.println();
      out.println(StallTable.of(reports));
      return outcome(reports);
    }
  }

  static Outcome outcome(Map<Variant, StallReport> reports) {
    List<Part> promise = new ArrayList<>();
    reports.forEach(
        (variant, report) -> {
          if (!report.stalledBusy()) {
            promise.add(
                new Part(
                    variant.label(), "no busy connection could be kept stalled", "one", false));
          }
        });
    StallReport timebound = reports.get(Variant.TIMEBOUND);
    StallReport google = reports.get(Variant.GOOGLE_POOL);
    if (timebound == null || google == null) {
      throw new IllegalArgumentException("reports: " + reports.keySet() + " (expected: all)");
    }
    promise.addAll(Promise.of(timebound));
    return Outcome.of(
        Promise.result(timebound, google), promise, Promise.summary(timebound, google));
  }

  private static MutateRowsRequest.Entry entry(DemoTable table, int index) {
    List<ByteString> values = table.cells(index);
    Mutation[] cells = new Mutation[values.size()];
    for (int i = 0; i < cells.length; i++) {
      cells[i] = BigtableTable.cell(DemoTable.FAMILY, "q" + i, values.get(i));
    }
    return BigtableTable.entry(table.key(index), cells);
  }
}
