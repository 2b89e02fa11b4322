package dev.timebound.deadline;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;

/**
 * The one timer of a {@link Deadline}, for all operators that enforce it (DL-9). At the instant it
 * signals the one that registered last first: that is the innermost, and its fallback (a partial
 * answer) runs before the outer ones are told.
 *
 * <p>Who registers while that goes on (a retry that subscribes again, a fallback with a bound of
 * its own) is told after all who were there before. So the outer bound cancels an endless retry
 * upstream of it, instead of being starved by it.
 */
final class SharedTimer implements Runnable {
  /**
   * How long the outer ones wait for an inner one that is handing on an item at that very moment
   * and signals its expiry right after. A consumer that blocks must not hold the outer ones back
   * any longer.
   */
  private static final long GRACE_MILLIS = 5;

  private final Deadline deadline;

  // all below is guarded by this
  private @Nullable Waiter first;
  private @Nullable Waiter last;
  private @Nullable Disposable task;
  private boolean armed;
  private boolean firing;
  private boolean walking;
  private boolean walkAgain;

  SharedTimer(Deadline deadline) {
    this.deadline = deadline;
  }

  /** One operator's subscription, linked into the timer. Its links belong to the timer's lock. */
  abstract static class Waiter {
    private @Nullable Waiter previous;
    private @Nullable Waiter next;
    private boolean linked;

    /**
     * The deadline has passed. False where the error is to be signalled in a moment by another
     * thread, which then calls {@link SharedTimer#resume}.
     */
    abstract boolean expire();
  }

  /**
   * Registers, and starts the timer where it does not run. Where the deadline has passed the waiter
   * and all others are told now, from this thread.
   *
   * @throws java.util.concurrent.RejectedExecutionException where the scheduler takes no timer; the
   *     waiter is not registered then
   */
  void add(Waiter waiter) {
    long left = deadline.remainingNanos();
    boolean arm;
    synchronized (this) {
      link(waiter);
      arm = !armed && !firing && left > 0;
      armed |= arm;
    }
    if (left <= 0) {
      fire();
    } else if (arm) {
      arm(left, waiter);
    }
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
    if (left > 0) { // a scheduler that is early
      arm(left, null);
    } else {
      fire();
    }
  }

  /** From an operator that has now signalled what {@link Waiter#expire} had left to it. */
  void resume() {
    walk();
  }

  private void fire() {
    synchronized (this) {
      firing = true;
    }
    walk();
  }

  private void walk() {
    while (true) {
      Waiter next;
      synchronized (this) {
        if (walking) {
          walkAgain = true;
          return;
        }
        next = last;
        if (next == null) {
          firing = false;
          return;
        }
        unlink(next);
        walking = true;
        walkAgain = false;
      }
      boolean told = next.expire();
      synchronized (this) {
        walking = false;
        if (!told && !walkAgain) {
          if (last == null) {
            firing = false;
            return;
          }
        } else {
          told = true;
        }
      }
      if (!told) {
        deadline.scheduler().schedule(this::walk, GRACE_MILLIS, TimeUnit.MILLISECONDS);
        return;
      }
    }
  }

  private void arm(long left, @Nullable Waiter waiter) {
    Disposable scheduled;
    try {
      scheduled = deadline.scheduler().schedule(this, left, TimeUnit.NANOSECONDS);
    } catch (RuntimeException e) {
      synchronized (this) {
        armed = false;
        if (waiter != null) {
          unlink(waiter);
        }
      }
      throw e;
    }
    synchronized (this) {
      if (armed && task == null) {
        task = scheduled;
        return;
      }
    }
    scheduled.dispose();
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
