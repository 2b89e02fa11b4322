package dev.timebound.bench;

import dev.timebound.demo.Logs;
import dev.timebound.demo.bigtable.Target;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * A JVM that scans in one mode: {@code mode table cells port warmUpSeconds measuredSeconds}. Its
 * figures are per row, over the measured time: CPU of the whole process, bytes allocated, and rows
 * a second.
 */
final class ScanMain {
  private static final int SCANS = 4;

  private ScanMain() {}

  public static void main(String[] args) throws Exception {
    Logs.quiet();
    ScanMode mode = ScanMode.valueOf(args[0]);
    int cells = Integer.parseInt(args[2]);
    Target target = new Target(Integer.parseInt(args[3]), "timebound", "bench", args[1]);
    long warmUp = Long.parseLong(args[4]);
    long measured = Long.parseLong(args[5]);
    LongAdder rows = new LongAdder();
    AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
    ScanClient client = mode.connect(target);
    for (int i = 0; i < SCANS; i++) {
      client.scanForEver(new RowCount(rows, Replies.SCAN_ROWS, cells), failure::set);
    }
    TimeUnit.SECONDS.sleep(warmUp);
    long rowsBefore = rows.sum();
    Usage before = Usage.now();
    TimeUnit.SECONDS.sleep(measured);
    Usage used = Usage.now().since(before);
    double read = rows.sum() - rowsBefore;
    Throwable failed = failure.get();
    if (failed != null || read == 0) {
      throw new IllegalStateException(mode + " failed, " + read + " rows read", failed);
    }
    System.out.println(
        Figures.none()
            .with("cpu_us", used.cpuNanos() / read / 1e3)
            .with("wall_us", used.wallNanos() / read / 1e3)
            .with("bytes", used.allocatedBytes() / read)
            .with("rows_per_s", read * 1e9 / used.wallNanos()));
    System.out.flush();
    // it scans for ever
    Runtime.getRuntime().halt(0);
  }
}
