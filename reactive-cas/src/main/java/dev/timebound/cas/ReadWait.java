package dev.timebound.cas;

import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.function.Consumer;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * A reader's waits, one after the other, each with its number, and the one timer that watches them.
 * Who ends a wait is the one to go on with the attempt; {@link #end} is the last one. (CAS-3)
 */
final class ReadWait {
  private static final AtomicIntegerFieldUpdater<ReadWait> WAIT =
      AtomicIntegerFieldUpdater.newUpdater(ReadWait.class, "wait");

  private static final int NOBODY = 0;
  private static final int ENDED = -1;

  /**
   * How long a thread is waited for where pieces are delivered. Whether one is free is a matter of
   * this machine, so both clocks must say that it has passed, the limits' and the machine's.
   */
  private static final long LONGEST_HANDOVER = TimeUnit.SECONDS.toNanos(1);

  private static final Scheduler MACHINE = Schedulers.immediate();

  private static final AtomicIntegerFieldUpdater<ReadWait> ARMED =
      AtomicIntegerFieldUpdater.newUpdater(ReadWait.class, "armed");

  private final RingSettings settings;
  private final Consumer<Runnable> delivery;
  private final Runnable overdue;
  private final Runnable held;

  private volatile int wait;

  /** Waits so far; the last one's number while one lasts. Of whoever may go on. */
  private int waits;

  private volatile long since;

  /** How long a wait may last now, in nanoseconds; 0 where there is no limit. */
  private volatile long patience;

  private volatile Disposable timer = Disposables.disposed();

  /** The number of the timer that counts. */
  private volatile int armed;

  /**
   * @param delivery runs a task where pieces are delivered
   * @param overdue called there, once, when a wait has lasted too long: it is the end then
   * @param held called by the timer in its place where no thread was to be had there
   */
  ReadWait(RingSettings settings, Consumer<Runnable> delivery, Runnable overdue, Runnable held) {
    this.settings = settings;
    this.delivery = delivery;
    this.overdue = overdue;
    this.held = held;
  }

  /** The first wait begins, and the timer. */
  void begin(long nanos) {
    patience = nanos;
    start();
    armWithin(nanos);
  }

  /** A wait begins; false where the attempt is over. */
  boolean start() {
    since = settings.now();
    int number = waits + 1;
    waits = number < 0 ? 1 : number;
    return goOn();
  }

  /** The wait that was just taken goes on: nothing has come that ends it. */
  boolean goOn() {
    return WAIT.compareAndSet(this, NOBODY, waits);
  }

  /** The last wait begins, with a limit of its own. */
  boolean last(long nanos) {
    timer.dispose();
    patience = nanos;
    if (!start()) {
      return false;
    }
    arm(nanos);
    return true;
  }

  /** How long each wait may last from now on. */
  void patience(long nanos) {
    patience = nanos;
  }

  /** Ends the wait for what has come; false where the attempt is over. */
  boolean take() {
    while (true) {
      int w = wait;
      if (w == ENDED) {
        return false;
      }
      if (WAIT.compareAndSet(this, w, NOBODY)) {
        return true;
      }
    }
  }

  /** True for the one that ends the attempt. */
  boolean end() {
    boolean mine = WAIT.getAndSet(this, ENDED) != ENDED;
    if (mine) {
      timer.dispose();
    }
    return mine;
  }

  boolean isOver() {
    return wait == ENDED;
  }

  private void arm(long nanos) {
    arm(this::tick, nanos);
  }

  private void arm(Runnable look, long nanos) {
    int number = ARMED.incrementAndGet(this);
    Runnable counted =
        () -> {
          if (armed == number) {
            look.run();
          }
        };
    try {
      timer = settings.scheduler().schedule(counted, nanos, TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException shutDown) {
      return; // no more timers: the caller's deadline still holds
    }
    if (wait == ENDED) {
      timer.dispose();
    }
  }

  /**
   * One timer for all waits, never longer away than the shortest limit to come. What is overdue is
   * confirmed where pieces are delivered, behind those that have come in by now: one that waits
   * there for a thread is no silence of the server's.
   */
  private void tick() {
    int w = wait;
    if (w == ENDED) {
      return;
    }
    long most = patience;
    long left = w == NOBODY || most == 0 ? most : most - (settings.now() - since);
    if (left > 0 || most == 0) {
      armWithin(left);
    } else {
      long handedOver = MACHINE.now(TimeUnit.NANOSECONDS);
      arm(() -> lookForThread(w, handedOver), LONGEST_HANDOVER);
      delivery.accept(() -> confirm(w));
    }
  }

  /** Subscribers that block may hold all threads: the limit holds all the same. */
  private void lookForThread(int w, long handedOver) {
    if (MACHINE.now(TimeUnit.NANOSECONDS) - handedOver < LONGEST_HANDOVER) {
      arm(() -> lookForThread(w, handedOver), LONGEST_HANDOVER);
    } else if (WAIT.compareAndSet(this, w, ENDED)) {
      held.run();
    } else if (wait != ENDED) {
      armWithin(0);
    }
  }

  private void armWithin(long nanos) {
    long gap = settings.gapTimeout().toNanos();
    arm(nanos == 0 ? gap : Math.min(nanos, gap));
  }

  private void confirm(int w) {
    if (WAIT.compareAndSet(this, w, ENDED)) {
      overdue.run();
    } else if (wait != ENDED) {
      armWithin(0);
    }
  }
}
