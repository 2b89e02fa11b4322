package dev.timebound.demo.cas;

import dev.timebound.cas.CasConfig;
import dev.timebound.cas.CasRing;
import dev.timebound.deadline.Deadlines;
import dev.timebound.demo.Scenario;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import reactor.core.publisher.Flux;

/**
 * Reads, checks and writes on a ring of four stores while one is killed, and while another is
 * frozen: gRPC with its defaults and Timebound, one after the other, under the same load and the
 * same faults.
 */
public final class CasScenario implements Scenario {
  private static final long SEED = 20_260_101;
  private static final Duration SEEDING = Duration.ofMinutes(1);
  private static final Duration DEADLINE = Duration.ofSeconds(8);
  private static final Duration QUICK_DEADLINE = Duration.ofSeconds(3);

  @Override
  public String name() {
    return "cas";
  }

  @Override
  public Outcome run(boolean quick, PrintStream out) throws Exception {
    Phases phases = quick ? Phases.quick() : Phases.full();
    LoadPlan plan = LoadPlan.standard(quick ? QUICK_DEADLINE : DEADLINE);
    out.println(
        "CAS: what callers see of a ring of "
            + Stores.COUNT
            + " stores while one is dead for "
            + phases.killed()
            + " s, and another frozen for "
            + phases.frozen()
            + " s");
    out.println(
        "  Promised of Timebound: every call is answered in time, nothing is wrong, nothing is said"
            + " to be missing that is there, every read of a mirrored blob succeeds");
    Map<Variant, Report> reports = new EnumMap<>(Variant.class);
    try (Stores stores = Stores.start()) {
      out.println("  Ring: " + stores.kind());
      Blobs blobs = new Blobs(stores.ring().weighted(), SEED);
      seed(stores, blobs);
      out.println(
          String.format(
              Locale.ROOT,
              "  Blobs: %d on two shards each, %d on their home alone, %d MiB in all",
              blobs.mirrored().size(),
              blobs.unmirrored().size(),
              blobs.bytes() / Blobs.MIB));
      out.println("  Load: " + plan);
      for (Variant variant : Variant.values()) {
        out.println("  " + variant.title());
        try (StoreClient client = client(variant, stores.ring(), phases)) {
          reports.put(variant, new OutageRun(client, stores, blobs, plan, phases, out).run());
        }
      }
    }
    out.println();
    out.println(OutageTable.of(reports));
    return outcome(reports, phases, out);
  }

  private static StoreClient client(Variant variant, CasConfig ring, Phases phases) {
    return variant == Variant.STOCK
        ? new StockClient(ring)
        : new TimeboundClient(ring, phases.cooldown());
  }

  /** Through rings of one shard: a write goes to the home of its key, and there is but one. */
  private static void seed(Stores stores, Blobs blobs) {
    List<CasRing> alone = new ArrayList<>();
    try {
      for (int shard = 0; shard < Stores.COUNT; shard++) {
        alone.add(CasRing.builder(stores.alone(shard)).build());
      }
      List<Blob> all = new ArrayList<>(blobs.mirrored());
      all.addAll(blobs.unmirrored());
      for (Blob blob : all) {
        byte[] content = blob.content();
        Flux.fromIterable(blobs.places(blob))
            .flatMap(place -> alone.get(place).write(blob.digest(), content))
            .then()
            .transform(Deadlines.within(SEEDING))
            .block();
      }
    } finally {
      alone.forEach(CasRing::close);
    }
  }

  static Outcome outcome(Map<Variant, Report> reports, Phases phases, PrintStream out) {
    Report timebound = reports.get(Variant.TIMEBOUND);
    Report stock = reports.get(Variant.STOCK);
    if (timebound == null || stock == null) {
      throw new IllegalArgumentException("reports: " + reports.keySet() + " (expected: all)");
    }
    String failed = timebound.figures().firstFailedMirrored();
    if (!failed.isEmpty()) {
      out.println("Timebound's first failed read of a mirrored blob: " + failed);
    }
    Scenario.tellGoals(Promise.goals(timebound, phases), out);
    return Outcome.of(
        Promise.result(timebound),
        Promise.of(timebound, phases),
        Promise.summary(timebound, stock));
  }
}
