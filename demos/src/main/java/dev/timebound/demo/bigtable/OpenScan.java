package dev.timebound.demo.bigtable;

import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;

/**
 * A long scan that is read at a steady pace from a row to the table's end, and then again from its
 * beginning, without end. {@link #tick} and {@link #close} come from one thread.
 */
final class OpenScan {
  private final ReadClient client;
  private final DemoTable table;
  private final LoadAccount account;
  private final LongSupplier clock;
  private final int rowsPerTick;
  private final Silence silence = new Silence();
  private int from;
  private @Nullable Reader reader;

  OpenScan(
      ReadClient client,
      DemoTable table,
      LoadAccount account,
      LongSupplier clock,
      int from,
      int rowsPerTick) {
    this.client = client;
    this.table = table;
    this.account = account;
    this.clock = clock;
    this.from = from;
    this.rowsPerTick = rowsPerTick;
  }

  /** Asks for the rows of this tick, less those still owed; opens a scan where none is open. */
  void tick() {
    Reader open = reader;
    if (open == null || open.done) {
      if (open != null) {
        from = open.next;
      }
      if (from >= table.rows()) {
        from = 0;
      }
      open = new Reader(from);
      reader = open;
      account.begun(account.isMeasuring());
      int first = from;
      ReadLoad.subscribe(() -> client.scan(table.key(first), table.key(table.rows()), 0), open);
    }
    open.ask(rowsPerTick - silence.wanted());
  }

  /** How long the reader has waited by now, nanoseconds. */
  long silentFor() {
    return silence.current(clock.getAsLong());
  }

  /** Ends it; a wait that still lasts counts as far as it went. */
  void close() {
    account.silence(silence.ended(clock.getAsLong()));
    Reader open = reader;
    if (open != null) {
      open.cancel();
      open.settle();
    }
  }

  private final class Reader extends BaseSubscriber<DemoRow> {
    private final RowCheck check;
    private boolean settled;
    volatile int next;
    volatile boolean done;

    Reader(int from) {
      this.check = new RowCheck(table, from, table.rows());
      this.next = from;
    }

    @Override
    protected void hookOnSubscribe(Subscription subscription) {
      // each tick asks
    }

    void ask(long rows) {
      // nothing can be asked of a subscription that has not come yet, or of one that is over
      if (rows > 0 && upstream() != null && !done) {
        silence.asked(rows, clock.getAsLong());
        request(rows);
      }
    }

    @Override
    protected void hookOnNext(DemoRow row) {
      account.silence(silence.row(clock.getAsLong()));
      synchronized (this) {
        check.row(row);
      }
    }

    @Override
    protected void hookOnComplete() {
      account.silence(silence.ended(clock.getAsLong()));
      synchronized (this) {
        check.completed();
      }
      settle();
    }

    @Override
    protected void hookOnError(Throwable error) {
      account.silence(silence.ended(clock.getAsLong()));
      account.failed(error);
      settle();
    }

    /** Hands in the account of its rows, once. */
    synchronized void settle() {
      if (!settled) {
        settled = true;
        account.rows(check);
        next = check.next();
        done = true;
      }
    }
  }
}
