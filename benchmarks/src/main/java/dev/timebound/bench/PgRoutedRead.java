package dev.timebound.bench;

import java.time.Duration;
import java.util.List;

/**
 * {@code pg-routed-read}: a read whose reader proves itself and its freshness, against what is
 * usual: an r2dbc-pool that pings before it lends, and a read-only transaction around the SELECT.
 * On loopback, and with 1 ms each way.
 */
final class PgRoutedRead implements Benchmark {
  private static final List<PgMode> MODES = List.of(PgMode.TIMEBOUND_PROVED, PgMode.STOCK_PING);

  @Override
  public String name() {
    return "pg-routed-read";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    try (PgReads reads = new PgReads(run)) {
      Contest<PgMode> direct = reads.direct(MODES);
      Contest<PgMode> delayed = reads.delayed(MODES, Duration.ofMillis(1));
      run.ratio(name(), direct.ratio(PgMode.STOCK_PING, PgMode.TIMEBOUND_PROVED, PgReads.P50));
      run.ratio(
          name() + "-2ms", delayed.ratio(PgMode.STOCK_PING, PgMode.TIMEBOUND_PROVED, PgReads.P50));
    }
  }
}
