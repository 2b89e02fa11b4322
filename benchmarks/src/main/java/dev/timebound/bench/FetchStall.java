package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import java.io.IOException;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/**
 * {@code fetch-stall}: what a partition that never answers costs the nine others of its requests,
 * from a client's second request on. The same client and gateway as in {@link FetchThroughput};
 * beside it the gateway with partition 0 caught up in place of stalled, so that the answers are the
 * same to the byte, and a model of what a broker does while a read of remote storage hangs.
 */
final class FetchStall implements Benchmark {
  private static final List<FetchServer> SERVERS =
      List.of(FetchServer.MEMORY, FetchServer.STALLED, FetchServer.STALLED_TIMER);
  private static final int PARTITIONS = 10;
  private static final int RECORDS_EACH = 12 << 10;
  private static final double MB = 1 << 20;
  private static final String SPEED = "mb_per_s";
  private static final String ANSWER_TIME = "ms_an_answer";
  private static final String FIRST = "first_ms";

  @Override
  public String name() {
    return "fetch-stall";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Map<FetchServer, FetchFork> running = new EnumMap<>(FetchServer.class);
    try {
      for (FetchServer server : SERVERS) {
        FetchFork started = FetchFork.start(server, PARTITIONS);
        running.put(server, started);
        fill(server, started.port());
        read(started, warmUps(server));
      }
      Contest<FetchServer> contest = new Contest<>(SERVERS);
      int rounds = run.quick() ? 3 : 7;
      contest.run(
          rounds,
          server -> read(Objects.requireNonNull(running.get(server)), passes(server, run.quick())),
          (round, server, figures) ->
              run.out()
                  .printf(
                      Locale.ROOT,
                      "  round %d of %d  %-34s %,6.0f MB/s, first answer after %.1f ms%n",
                      round,
                      rounds,
                      server.title(),
                      figures.get(SPEED),
                      figures.get(FIRST)));
      print(run, contest);
      // more is better here: ours above, the other below
      run.ratio(name(), contest.ratio(FetchServer.STALLED, FetchServer.MEMORY, SPEED));
      run.ratio(
          name() + "-vs-kafka",
          contest.ratio(FetchServer.STALLED, FetchServer.STALLED_TIMER, SPEED));
    } finally {
      for (FetchFork each : running.values()) {
        each.close();
      }
    }
  }

  /** Partition 0 has a record where it stalls: of one that has none nothing is read. */
  private static void fill(FetchServer server, int port) throws Exception {
    int[] records = new int[PARTITIONS];
    Arrays.fill(records, RECORDS_EACH);
    records[0] = server == FetchServer.MEMORY ? 0 : 1;
    FetchLoad.fill(port, records);
  }

  private static int warmUps(FetchServer server) {
    return server == FetchServer.STALLED_TIMER ? 0 : 30;
  }

  /** One of the model is 12 requests of half a second. */
  private static int passes(FetchServer server, boolean quick) {
    return server == FetchServer.STALLED_TIMER ? 1 : quick ? 30 : 100;
  }

  private static Figures read(FetchFork server, int passes) throws IOException {
    long[] ends = new long[PARTITIONS];
    Arrays.fill(ends, RECORDS_EACH);
    ends[0] = RawFetch.FOLLOWED;
    try (RawFetch client = new RawFetch(server.port(), FetchLoad.TOPIC)) {
      long connected = System.nanoTime();
      client.readOnce(PARTITIONS);
      long start = System.nanoTime();
      long answers = 0;
      for (int i = 0; i < passes; i++) {
        answers += client.readAll(ends).requests();
      }
      double seconds = (System.nanoTime() - start) / 1e9;
      double mb = (double) (PARTITIONS - 1) * RECORDS_EACH * FetchLoad.RECORD_BYTES / MB * passes;
      return Figures.none()
          .with(SPEED, mb / seconds)
          .with(ANSWER_TIME, answers == 0 ? 0 : seconds * 1e3 / answers)
          .with(FIRST, (start - connected) / 1e6);
    }
  }

  private static void print(BenchRun run, Contest<FetchServer> contest) {
    TextTable table =
        new TextTable(
            "9 healthy partitions of 10",
            "MB/s\nmedian",
            "\nmin",
            "\nmax",
            "an answer\nmedian",
            "a client's\nfirst one");
    for (FetchServer server : contest.contestants()) {
      String[] speed = contest.of(server, SPEED).cells("%,.0f");
      table.row(
          server == FetchServer.MEMORY ? "gateway, none stalled" : server.title(),
          speed[0],
          speed[1],
          speed[2],
          contest.of(server, ANSWER_TIME).cell("%.1f ms"),
          contest.of(server, FIRST).cell("%.1f ms"));
    }
    run.out().println();
    run.out().println(table);
  }
}
