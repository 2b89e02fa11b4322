package dev.timebound.demo.bigtable;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.HdrHistogram.Histogram;
import org.reactivestreams.Publisher;
import reactor.core.publisher.BaseSubscriber;

/**
 * Puts a {@link LoadPlan} on a client, from two threads of its own: one begins reads when their
 * time has come, one asks for the open scans' rows. Arrivals are open: a slow answer never delays
 * the next read.
 */
public final class ReadLoad implements AutoCloseable {
  private static final int TICKS_PER_SECOND = 20;

  private final ReadClient client;
  private final DemoTable table;
  private final LoadPlan plan;
  private final LoadAccount account = new LoadAccount();
  private final Set<OneRead> pending = ConcurrentHashMap.newKeySet();
  private final List<OpenScan> scans = new ArrayList<>();
  private final Thread arrivals = new Thread(this::arrive, "load-arrivals");
  private final Thread readers = new Thread(this::read, "load-open-scans");
  private volatile boolean arriving = true;
  private volatile boolean reading = true;

  public ReadLoad(ReadClient client, DemoTable table, LoadPlan plan) {
    this.client = client;
    this.table = table;
    this.plan = plan;
    int open = plan.steadyScans() + plan.lazyScans();
    for (int i = 0; i < open; i++) {
      int from = (int) ((long) table.rows() * i / open);
      int rate = i < plan.steadyScans() ? plan.steadyRows() : plan.lazyRows();
      int rows = Math.max(1, rate / TICKS_PER_SECOND);
      scans.add(new OpenScan(client, table, account, System::nanoTime, from, rows));
    }
    arrivals.setDaemon(true);
    readers.setDaemon(true);
  }

  public void start() {
    arrivals.start();
    readers.start();
  }

  /** The warm-up is over: time counts from here on. */
  public void measure() {
    account.measure();
  }

  /** How it stands at this moment; "since" in it is since this was last asked. */
  public Moment moment() {
    Histogram recent = account.recent();
    long oldest = pending.stream().mapToLong(OneRead::age).max().orElse(0);
    List<Long> silences = scans.stream().map(OpenScan::silentFor).toList();
    return new Moment(
        recent.getTotalCount(),
        recent.getTotalCount() == 0 ? 0 : recent.getMaxValue() / 1_000,
        pending.size(),
        TimeUnit.NANOSECONDS.toMillis(oldest),
        (int) silences.stream().filter(s -> s > TimeUnit.MILLISECONDS.toNanos(500)).count(),
        TimeUnit.NANOSECONDS.toMillis(silences.stream().mapToLong(s -> s).max().orElse(0)));
  }

  /**
   * @param answered reads answered since
   * @param slowestMillis the slowest of these
   * @param pending reads under way
   * @param oldestMillis the age of the oldest of them
   * @param silentScans open scans whose reader has waited for more than half a second
   * @param silentMillis the longest of these waits by now
   */
  public record Moment(
      long answered,
      long slowestMillis,
      int pending,
      long oldestMillis,
      int silentScans,
      long silentMillis) {}

  /**
   * No more reads; waits until all that were begun have ended and no scan is silent, for {@code
   * patience} at most, and gives the figures. What has not ended by then counts as an error.
   */
  public LoadFigures finish(java.time.Duration patience) throws InterruptedException {
    arriving = false;
    arrivals.join();
    long until = System.nanoTime() + patience.toNanos();
    while (System.nanoTime() < until && !quiet()) {
      Thread.sleep(20);
    }
    close();
    return account.figures();
  }

  private boolean quiet() {
    Moment now = moment();
    return now.pending() == 0 && now.silentScans() == 0;
  }

  /** Ends all that is under way. */
  @Override
  public void close() throws InterruptedException {
    arriving = false;
    reading = false;
    arrivals.join();
    readers.join();
    scans.forEach(OpenScan::close);
    pending.forEach(OneRead::giveUp);
  }

  private void arrive() {
    Random random = new Random(plan.seed());
    int perSecond = plan.pointsPerSecond() + plan.shortScansPerSecond();
    long due = System.nanoTime();
    while (arriving) {
      due += (long) (-Math.log(1 - random.nextDouble()) * 1e9 / perSecond);
      boolean point = random.nextInt(perSecond) < plan.pointsPerSecond();
      int rows = point ? 1 : plan.shortScanRows();
      int from = random.nextInt(Math.max(1, table.rows() - rows));
      waitUntil(due);
      begin(point, from, Math.min(rows, table.rows() - from), due);
    }
  }

  private void begin(boolean point, int from, int rows, long due) {
    RowCheck check = new RowCheck(table, from, from + rows);
    OneRead read = new OneRead(account, check, System::nanoTime, pending, due);
    String key = table.key(from);
    subscribe(
        () -> point ? client.point(key) : client.scan(key, table.key(from + rows), rows), read);
  }

  /** A client that throws where it should signal an error is no reason to stop the load. */
  static void subscribe(Supplier<Publisher<DemoRow>> rows, BaseSubscriber<DemoRow> reader) {
    try {
      rows.get().subscribe(reader);
    } catch (RuntimeException e) {
      reader.onError(e);
    }
  }

  private void read() {
    long due = System.nanoTime();
    while (reading) {
      scans.forEach(OpenScan::tick);
      due += TimeUnit.SECONDS.toNanos(1) / TICKS_PER_SECOND;
      waitUntil(due);
    }
  }

  private static void waitUntil(long due) {
    long left;
    while ((left = due - System.nanoTime()) > 0) {
      LockSupport.parkNanos(left);
    }
  }
}
