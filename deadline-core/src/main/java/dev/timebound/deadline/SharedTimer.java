package dev.timebound.deadline;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.Exceptions;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/**
 * The one timer of a {@link Deadline}, for all operators that enforce it (DL-9). At the instant it
 * tells the one that registered last first: that is the innermost, and its fallback (a partial
 * answer) runs before the outer ones are told.
 *
 * <p>Who registers while that goes on (a retry that subscribes again, a fallback with a bound of
 * its own) is told after all who were there before. So the outer bound ends an endless retry
 * upstream of it instead of being starved by it.
 */
final class SharedTimer implements Runnable {
  /**
   * How long the outer ones wait for an inner one that is handing on an item at that very moment
   * and signals its expiry right after: enough for a fallback that answers at once. A consumer that
   * blocks must not hold the outer ones back any longer.
   */
  private static final long GRACE_MILLIS = 5;

  private final Deadline deadline;

  // All below is guarded by this. The waiters are linked in the order in which they are told, from
  // last to first.
  private @Nullable Waiter first;
  private @Nullable Waiter last;
  private @Nullable Disposable task;
  private boolean armed;

  /** The instant has passed and not all have been told; newcomers queue up behind. */
  private boolean firing;

  /** A thread is telling a waiter. */
  private boolean walking;

  SharedTimer(Deadline deadline) {
    this.deadline = deadline;
  }

  /** One operator's subscription. Its links belong to the timer's lock. */
  abstract static class Waiter {
    private @Nullable Waiter previous;
    private @Nullable Waiter next;
    private boolean linked;

    /** The deadline has passed. False where another thread signals that in a moment. */
    abstract boolean expire();

    /** The scheduler takes no timer, so the deadline cannot be kept. */
    abstract void reject(Throwable cause);
  }

  /**
   * Registers, and starts the timer where it does not run. False where the deadline has passed:
   * then all are told, this one too, from this thread, or from the one that is telling the others
   * right now.
   */
  boolean add(Waiter waiter) {
    long left = deadline.remainingNanos();
    boolean arm;
    synchronized (this) {
      link(waiter);
      arm = !armed && left > 0;
      armed |= arm;
    }
    if (left <= 0) {
      fire();
      return false;
    }
    if (arm) {
      arm(left);
    }
    return true;
  }

  /** Takes the waiter out; the last one that leaves stops the timer. */
  void remove(Waiter waiter) {
    Disposable stop = null;
    synchronized (this) {
      unlink(waiter);
      if (first == null) {
        armed = false;
        stop = task;
        task = null;
      }
    }
    if (stop != null) {
      stop.dispose();
    }
  }

  /** The scheduler's call. */
  @Override
  public void run() {
    long left = deadline.remainingNanos();
    synchronized (this) {
      task = null;
      armed = left > 0 && first != null;
      if (first == null) {
        return;
      }
    }
    if (left > 0) { // the scheduler is early
      arm(left);
    } else {
      fire();
    }
  }

  private void fire() {
    synchronized (this) {
      if (firing) {
        return; // who tells the others finds the newcomer too
      }
      firing = true;
    }
    walk();
  }

  private void walk() {
    while (true) {
      Waiter waiter;
      synchronized (this) {
        if (walking) {
          return; // it goes on until none is left
        }
        waiter = firing ? last : null;
        if (waiter == null) {
          firing = false;
          return;
        }
        unlink(waiter);
        walking = true;
      }
      boolean told = tell(waiter);
      synchronized (this) {
        walking = false;
        if (!told && last == null) {
          firing = false;
          return;
        }
      }
      if (!told && pause()) {
        return;
      }
    }
  }

  /** Whatever a subscriber throws, the others must be told. */
  private static boolean tell(Waiter waiter) {
    try {
      return waiter.expire();
    } catch (Throwable e) {
      Exceptions.throwIfJvmFatal(e);
      Operators.onErrorDropped(e, Context.empty());
      return true;
    }
  }

  private boolean pause() {
    try {
      deadline.scheduler().schedule(this::walk, GRACE_MILLIS, TimeUnit.MILLISECONDS);
      return true;
    } catch (RuntimeException e) { // no more timers: then without the grace
      return false;
    }
  }

  private void arm(long left) {
    Disposable scheduled;
    try {
      scheduled = deadline.scheduler().schedule(this, left, TimeUnit.NANOSECONDS);
    } catch (RuntimeException e) {
      rejectAll(e);
      return;
    }
    synchronized (this) {
      if (armed && task == null) {
        task = scheduled;
        return;
      }
    }
    scheduled.dispose();
  }

  private void rejectAll(RuntimeException cause) {
    while (true) {
      Waiter waiter;
      synchronized (this) {
        armed = false;
        waiter = last;
        if (waiter == null) {
          return;
        }
        unlink(waiter);
      }
      waiter.reject(cause);
    }
  }

  private void link(Waiter waiter) {
    waiter.linked = true;
    if (firing) {
      waiter.next = first;
      if (first == null) {
        last = waiter;
      } else {
        first.previous = waiter;
      }
      first = waiter;
    } else {
      waiter.previous = last;
      if (last == null) {
        first = waiter;
      } else {
        last.next = waiter;
      }
      last = waiter;
    }
  }

  private void unlink(Waiter waiter) {
    if (!waiter.linked) {
      return;
    }
    waiter.linked = false;
    Waiter before = waiter.previous;
    Waiter after = waiter.next;
    if (before == null) {
      first = after;
    } else {
      before.next = after;
    }
    if (after == null) {
      last = before;
    } else {
      after.previous = before;
    }
    waiter.previous = null;
    waiter.next = null;
  }
}
