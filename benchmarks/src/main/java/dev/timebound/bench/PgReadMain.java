package dev.timebound.bench;

import dev.timebound.demo.Logs;
import dev.timebound.demo.pg.Servers;
import dev.timebound.demo.pg.Table;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/**
 * A JVM that reads rows, one read after the other: {@code mode writerPort readerPort user database
 * warmUp measured} (seconds).
 */
final class PgReadMain {
  private static final int BODY = 256;
  private static final long LARGEST_NANOS = TimeUnit.MINUTES.toNanos(1);

  private PgReadMain() {}

  public static void main(String[] args) throws Exception {
    Logs.quiet();
    PgMode mode = PgMode.valueOf(args[0]);
    Servers servers =
        new Servers(
            Integer.parseInt(args[1]), Integer.parseInt(args[2]), args[3], args[4], "bench");
    PgReader reader = mode.connect(servers);
    Random random = new Random(20_260_101);
    Histogram warmUp = new Histogram(1, LARGEST_NANOS, 3);
    read(reader, random, Long.parseLong(args[5]), warmUp);
    Histogram latency = new Histogram(1, LARGEST_NANOS, 3);
    Usage before = Usage.now();
    read(reader, random, Long.parseLong(args[6]), latency);
    Usage used = Usage.now().since(before);
    double reads = latency.getTotalCount();
    System.out.println(
        Figures.none()
            .with("p50_us", latency.getValueAtPercentile(50) / 1e3)
            .with("p99_us", latency.getValueAtPercentile(99) / 1e3)
            .with("cpu_us", used.cpuNanos() / reads / 1e3)
            .with("bytes", used.allocatedBytes() / reads)
            .with("all_reads", reads + warmUp.getTotalCount()));
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private static void read(PgReader reader, Random random, long seconds, Histogram latency)
      throws Exception {
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    for (long began = System.nanoTime(); began < until; ) {
      String row = reader.read(1 + random.nextInt(Table.ROWS));
      long now = System.nanoTime();
      latency.recordValue(Math.min(LARGEST_NANOS, now - began));
      if (row.length() != BODY) {
        throw new IllegalStateException("a row of " + row.length() + " (expected: " + BODY + ")");
      }
      began = now;
    }
  }
}
