package dev.timebound.demo.bigtable;

import java.util.Set;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import reactor.core.publisher.BaseSubscriber;

/** A point read or a short scan under way. */
final class OneRead extends BaseSubscriber<DemoRow> {
  private final LoadAccount account;
  private final RowCheck check;
  private final LongSupplier clock;
  private final Set<OneRead> pending;
  private final long intended;
  private final boolean measured;
  private final AtomicBoolean ended = new AtomicBoolean();

  /**
   * @param intended when it should begin; a read that begins late because the client held up the
   *     load is as slow as its user would find it
   */
  OneRead(
      LoadAccount account,
      RowCheck check,
      LongSupplier clock,
      Set<OneRead> pending,
      long intended) {
    this.account = account;
    this.check = check;
    this.clock = clock;
    this.pending = pending;
    this.intended = intended;
    this.measured = account.isMeasuring();
    account.begun(measured);
    pending.add(this);
  }

  /** How long it has taken by now, nanoseconds. */
  long age() {
    return clock.getAsLong() - intended;
  }

  @Override
  protected void hookOnNext(DemoRow row) {
    check.row(row);
  }

  @Override
  protected void hookOnComplete() {
    if (end()) {
      check.completed();
      account.rows(check);
    }
  }

  @Override
  protected void hookOnError(Throwable error) {
    if (end()) {
      account.failed(error);
      account.rows(check);
    }
  }

  /** The last wait is over and it has not ended: an error, as slow as it is by now. */
  void giveUp() {
    if (end()) {
      account.failed(
          new TimeoutException("no answer, " + age() / 1_000_000 + " ms after it began"));
      cancel();
    }
  }

  private boolean end() {
    if (!ended.compareAndSet(false, true)) {
      return false;
    }
    pending.remove(this);
    account.ended(measured, age());
    return true;
  }
}
