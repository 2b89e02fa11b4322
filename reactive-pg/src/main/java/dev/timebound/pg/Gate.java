package dev.timebound.pg;

import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;

/**
 * Keeps what is sent on a connection ahead of how that connection is given back. Its caller may
 * leave on another thread in the very moment that something is sent: a BEGIN that comes behind the
 * ROLLBACK stays open in the pool, and a statement behind it runs by itself, for good or in whoever
 * has the connection by then. So what is being sent is sent first, and behind the end nothing is.
 * (PG-16, PG-19) Thread-safe; nothing is run under its lock.
 */
final class Gate {
  // guarded by this
  private int sending;
  private int turn;
  private boolean over;
  private @Nullable Runnable end;

  synchronized boolean isOver() {
    return over;
  }

  /** What is sent belongs to the turn in which its caller asked for it. */
  synchronized int turn() {
    return turn;
  }

  /**
   * Begins another turn: nothing of the earlier ones is sent from now on.
   *
   * @return false where something is being sent in this moment, or it is over
   */
  synchronized boolean next() {
    if (over || sending > 0) {
      return false;
    }
    turn++;
    return true;
  }

  /**
   * Runs what sends.
   *
   * @return false where that turn is over: it was not run
   */
  boolean send(int of, Runnable what) {
    synchronized (this) {
      if (over || of != turn) {
        return false;
      }
      sending++;
    }
    try {
      what.run();
    } finally {
      sent();
    }
    return true;
  }

  private void sent() {
    Runnable last = null;
    synchronized (this) {
      if (--sending == 0) {
        last = end;
        end = null;
      }
    }
    if (last != null) {
      last.run();
    }
  }

  /**
   * The same of what is sent by its subscription.
   *
   * @param refused had in its place where that turn is over
   */
  <T> Flux<T> sending(int of, Supplier<? extends Publisher<T>> what, Publisher<T> refused) {
    Flux<T> sent = Flux.defer(what);
    return new Flux<>() {
      @Override
      public void subscribe(CoreSubscriber<? super T> actual) {
        if (!send(of, () -> sent.subscribe(actual))) {
          refused.subscribe(actual);
        }
      }
    };
  }

  /**
   * It is over. Once, at once, or as soon as what is being sent has been.
   *
   * @return false where it was over before: this is not run
   */
  boolean end(Runnable how) {
    synchronized (this) {
      if (over) {
        return false;
      }
      over = true;
      if (sending > 0) {
        end = how;
        return true;
      }
    }
    how.run();
    return true;
  }
}
