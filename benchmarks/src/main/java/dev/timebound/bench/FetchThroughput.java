package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * {@code fetch-throughput}: a client that only counts bytes reads 1 GB of records of 1 KiB from the
 * Kafka gateway and from a real Kafka broker, in turns. Each server is in a JVM of its own, holds
 * all of it in memory (the broker's log in the page cache), and is asked for its own CPU time
 * before and after.
 */
final class FetchThroughput implements Benchmark {
  private static final List<FetchServer> SERVERS =
      List.of(FetchServer.KAFKA, FetchServer.MEMORY, FetchServer.SEGMENTS);
  private static final int PARTITIONS = 4;
  private static final double MB = 1 << 20;
  private static final String SPEED = "mb_per_s";
  private static final String CPU = "cpu_us_per_mb";
  private static final String BATCH = "batch_bytes";
  private static final String ANSWER = "answer_bytes";
  private static final String KCAT_SPEED = "kcat_mb_per_s";
  private static final String KCAT_CPU = "kcat_cpu_us_per_mb";

  @Override
  public String name() {
    return "fetch-throughput";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    int recordsEach = (run.quick() ? 192 << 10 : 1 << 20) / PARTITIONS;
    int warmUps =
        run.quick() ? 25 : 10; // of some 5 and 10 GB: what is compiled is compiled by then
    Map<FetchServer, FetchFork> running = new EnumMap<>(FetchServer.class);
    try {
      for (FetchServer server : SERVERS) {
        FetchFork started = FetchFork.start(server, PARTITIONS);
        running.put(server, started);
        FetchLoad.fill(started.port(), PARTITIONS, recordsEach);
        read(started, recordsEach, warmUps);
      }
      Contest<FetchServer> contest = new Contest<>(SERVERS);
      int rounds = run.quick() ? 3 : 7;
      int passes = run.quick() ? 8 : 3;
      contest.run(
          rounds,
          server -> read(Objects.requireNonNull(running.get(server)), recordsEach, passes),
          (round, server, figures) ->
              run.out()
                  .printf(
                      Locale.ROOT,
                      "  round %d of %d  %-26s %,6.0f MB/s, %,4.0f us server CPU a MB%n",
                      round,
                      rounds,
                      server.title(),
                      figures.get(SPEED),
                      figures.get(CPU)));
      Contest<FetchServer> kcat = kcat(running, recordsEach, run.quick() ? 1 : 3);
      print(run, contest, kcat);
      ratios(run, contest, FetchServer.MEMORY, "");
      ratios(run, contest, FetchServer.SEGMENTS, "-segments");
    } finally {
      for (FetchFork each : running.values()) {
        each.close();
      }
    }
  }

  private static Figures read(FetchFork server, int recordsEach, int passes) throws IOException {
    long[] ends = new long[PARTITIONS];
    Arrays.fill(ends, recordsEach);
    double batches = 0;
    double bytes = 0;
    double answers = 0;
    try (RawFetch client = new RawFetch(server.port(), FetchLoad.TOPIC)) {
      Usage before = server.usage();
      long start = System.nanoTime();
      for (int i = 0; i < passes; i++) {
        RawFetch.Totals totals = client.readAll(ends);
        batches += totals.batches();
        bytes += totals.bytes();
        answers += totals.requests();
      }
      double seconds = (System.nanoTime() - start) / 1e9;
      Usage used = server.usage().since(before);
      double mb = megabytes(recordsEach) * passes;
      return Figures.none()
          .with(SPEED, mb / seconds)
          .with(CPU, used.cpuNanos() / 1e3 / mb)
          .with(BATCH, bytes / batches)
          .with(ANSWER, bytes / answers);
    }
  }

  private static double megabytes(int recordsEach) {
    return (double) PARTITIONS * recordsEach * FetchLoad.RECORD_BYTES / MB;
  }

  /** The same with kcat, which looks at every record; nothing where it is not installed. */
  private static Contest<FetchServer> kcat(
      Map<FetchServer, FetchFork> running, int recordsEach, int rounds) throws Exception {
    Contest<FetchServer> contest = new Contest<>(List.copyOf(running.keySet()));
    Path kcat = onPath("kcat");
    if (kcat != null) {
      for (FetchFork server : running.values()) {
        kcat(kcat, server, recordsEach); // its requests are of another version
      }
      contest.run(
          rounds,
          server -> kcat(kcat, Objects.requireNonNull(running.get(server)), recordsEach),
          (round, server, figures) -> {});
    }
    return contest;
  }

  private static Figures kcat(Path kcat, FetchFork server, int recordsEach) throws Exception {
    List<String> command =
        new ArrayList<>(List.of(kcat.toString(), "-C", "-q", "-e", "-o", "beginning"));
    command.addAll(List.of("-b", "127.0.0.1:" + server.port(), "-t", FetchLoad.TOPIC));
    Usage before = server.usage();
    long start = System.nanoTime();
    Process process =
        new ProcessBuilder(command)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    try {
      if (!process.waitFor(2, TimeUnit.MINUTES) || process.exitValue() != 0) {
        throw new IOException("kcat did not read to the end");
      }
    } finally {
      process.destroyForcibly();
    }
    double seconds = (System.nanoTime() - start) / 1e9;
    Usage used = server.usage().since(before);
    double mb = megabytes(recordsEach);
    return Figures.none().with(KCAT_SPEED, mb / seconds).with(KCAT_CPU, used.cpuNanos() / 1e3 / mb);
  }

  static @Nullable Path onPath(String program) {
    String path = System.getenv("PATH");
    for (String directory : path == null ? new String[0] : path.split(":")) {
      Path there = Path.of(directory, program);
      if (Files.isExecutable(there)) {
        return there;
      }
    }
    return null;
  }

  private static void print(BenchRun run, Contest<FetchServer> contest, Contest<FetchServer> kcat) {
    TextTable table =
        new TextTable(
            "1 GB in records of 1 KiB",
            "MB/s\nmedian",
            "\nmin",
            "\nmax",
            "server CPU a MB\nmedian",
            "\nmin",
            "\nmax",
            "a batch\n(bytes)",
            "an answer\n(KiB)");
    for (FetchServer server : contest.contestants()) {
      String[] speed = contest.of(server, SPEED).cells("%,.0f");
      String[] cpu = contest.of(server, CPU).cells("%,.0f us");
      table.row(
          server.title(),
          speed[0],
          speed[1],
          speed[2],
          cpu[0],
          cpu[1],
          cpu[2],
          contest.of(server, BATCH).cell("%,.0f"),
          String.format(Locale.ROOT, "%,.0f", contest.of(server, ANSWER).median() / 1024));
    }
    for (FetchServer server : kcat.contestants()) {
      if (Double.isFinite(kcat.of(server, KCAT_SPEED).median())) {
        String[] speed = kcat.of(server, KCAT_SPEED).cells("%,.0f");
        String[] cpu = kcat.of(server, KCAT_CPU).cells("%,.0f us");
        table.row(
            server.title() + ", kcat",
            speed[0],
            speed[1],
            speed[2],
            cpu[0],
            cpu[1],
            cpu[2],
            "",
            "");
      }
    }
    run.out().println();
    run.out().println(table);
  }

  /** The lesser of the two, and both. */
  private void ratios(BenchRun run, Contest<FetchServer> contest, FetchServer ours, String what) {
    // more is better here: ours above, the broker's below
    double speed = contest.ratio(ours, FetchServer.KAFKA, SPEED);
    double cpu = contest.ratio(FetchServer.KAFKA, ours, CPU);
    run.ratio(name() + what, Math.min(speed, cpu));
    run.ratio(name() + what + "-mbps", speed);
    run.ratio(name() + what + "-cpu", cpu);
  }
}
