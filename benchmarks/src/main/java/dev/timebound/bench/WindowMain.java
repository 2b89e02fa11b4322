package dev.timebound.bench;

import dev.timebound.bigtable.BigtableClient;
import dev.timebound.bigtable.Cell;
import dev.timebound.bigtable.Query;
import dev.timebound.demo.Logs;
import dev.timebound.demo.bigtable.Target;
import dev.timebound.demo.bigtable.TimeboundReadClient;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * A JVM that scans over one channel: {@code windowBytes port warmUpSeconds measuredSeconds}. Its
 * figure is what came in of cells' values.
 */
final class WindowMain {
  private static final int SCANS = 4;

  private WindowMain() {}

  public static void main(String[] args) throws Exception {
    Logs.quiet();
    Target target = new Target(Integer.parseInt(args[1]), "timebound", "bench", Replies.WIDE);
    BigtableClient client =
        TimeboundReadClient.builder(target)
            .streamWindowBytes(Integer.parseInt(args[0]))
            .pool(pool -> pool.fixedChannels(1))
            .build();
    LongAdder bytes = new LongAdder();
    AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
    for (int i = 0; i < SCANS; i++) {
      client
          .readRows(Query.builder(target.table()).build())
          .repeat()
          .subscribe(
              row -> {
                for (Cell cell : row.cells()) {
                  bytes.add(cell.value().size());
                }
              },
              failure::set);
    }
    TimeUnit.SECONDS.sleep(Long.parseLong(args[2]));
    long before = bytes.sum();
    long began = System.nanoTime();
    TimeUnit.SECONDS.sleep(Long.parseLong(args[3]));
    double read = bytes.sum() - before;
    double seconds = (System.nanoTime() - began) / 1e9;
    Throwable failed = failure.get();
    if (failed != null || read == 0) {
      throw new IllegalStateException("no rows", failed);
    }
    System.out.println(Figures.none().with("mb_per_s", read / 1e6 / seconds));
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }
}
