package dev.timebound.bench;

import java.util.List;

/**
 * {@code pg-plain-read}: a routed read that asks for no freshness, against an r2dbc-pool that does
 * not ping and the same transaction. HikariCP with pgjdbc stands beside them for reference.
 */
final class PgPlainRead implements Benchmark {
  private static final List<PgMode> MODES =
      List.of(PgMode.TIMEBOUND_PLAIN, PgMode.STOCK_PLAIN, PgMode.HIKARI);

  @Override
  public String name() {
    return "pg-plain-read";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    try (PgReads reads = new PgReads(run)) {
      Contest<PgMode> direct = reads.direct(MODES);
      run.ratio(name(), direct.ratio(PgMode.STOCK_PLAIN, PgMode.TIMEBOUND_PLAIN, PgReads.P50));
    }
  }
}
