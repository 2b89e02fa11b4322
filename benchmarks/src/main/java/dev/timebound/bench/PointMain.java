package dev.timebound.bench;

import dev.timebound.demo.Logs;
import dev.timebound.demo.bigtable.Target;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * A JVM that keeps 64 reads of single rows under way: {@code mode port warmUpSeconds
 * measuredSeconds}. Its figures are per read, over the measured time.
 */
final class PointMain {
  static final int IN_FLIGHT = 64;
  private static final long LARGEST_NANOS = TimeUnit.MINUTES.toNanos(1);

  private final PointMode.PointClient client;
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
  private volatile Histogram latency = histogram();

  private PointMain(PointMode.PointClient client) {
    this.client = client;
  }

  private static Histogram histogram() {
    return new ConcurrentHistogram(1, LARGEST_NANOS, 3);
  }

  public static void main(String[] args) throws Exception {
    Logs.quiet();
    PointMode mode = PointMode.valueOf(args[0]);
    Target target = new Target(Integer.parseInt(args[1]), "timebound", "bench", Replies.POINT);
    PointMain main = new PointMain(mode.connect(target));
    for (int i = 0; i < IN_FLIGHT; i++) {
      main.new Reader(i).next();
    }
    TimeUnit.SECONDS.sleep(Long.parseLong(args[2]));
    Histogram latency = histogram();
    main.latency = latency;
    Usage before = Usage.now();
    TimeUnit.SECONDS.sleep(Long.parseLong(args[3]));
    Usage used = Usage.now().since(before);
    main.latency = histogram();
    double reads = latency.getTotalCount();
    Throwable failed = main.failure.get();
    if (failed != null || reads == 0) {
      throw new IllegalStateException(mode + " failed, " + reads + " rows read", failed);
    }
    System.out.println(
        Figures.none()
            .with("cpu_us", used.cpuNanos() / reads / 1e3)
            .with("bytes", used.allocatedBytes() / reads)
            .with("p50_us", latency.getValueAtPercentile(50) / 1e3)
            .with("p99_us", latency.getValueAtPercentile(99) / 1e3)
            .with("reads_per_s", reads * 1e9 / used.wallNanos()));
    System.out.flush();
    // it reads for ever
    Runtime.getRuntime().halt(0);
  }

  /** One read after the other. */
  private final class Reader implements PointMode.Answer {
    private final SplittableRandom random;
    private long began;

    Reader(int seed) {
      random = new SplittableRandom(seed);
    }

    void next() {
      began = System.nanoTime();
      client.read(Replies.key(random.nextInt(Replies.SCAN_ROWS)), this);
    }

    @Override
    public void row(int bytes) {
      if (bytes != Replies.CELL_BYTES) {
        failed(new IllegalStateException("a row of " + bytes + " bytes"));
        return;
      }
      latency.recordValue(Math.min(LARGEST_NANOS, System.nanoTime() - began));
      next();
    }

    @Override
    public void failed(Throwable error) {
      failure.compareAndSet(null, error);
    }
  }
}
