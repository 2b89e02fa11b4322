package dev.timebound.pg;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Operators;
import reactor.pool.PooledRef;
import reactor.util.context.Context;

/*
 * One acquire, between reactor-pool and the read that waits. reactor-pool hands a connection over
 * once and forgets it, also to someone who is just leaving; so it is received here, by no operator,
 * and goes back whatever happens: at a delivery after the end, and at a cancel after the delivery as
 * long as nobody has touched the lease, since an operator downstream may have dropped it. (PG-4)
 */
final class Waiter implements CoreSubscriber<PooledRef<ReaderConnection>>, Subscription, Runnable {
  private static final int NEW = 0;
  private static final int WAITING = 1;
  private static final int DONE = 2;

  private final ReaderPool pool;
  private final PgSettings settings;
  private final CoreSubscriber<? super Lease> actual;
  private final long waitNanos;

  private final AtomicInteger state = new AtomicInteger(NEW);
  private volatile @Nullable Subscription upstream;
  private volatile @Nullable Disposable timer;
  private volatile boolean entered;

  private volatile boolean left;
  private volatile boolean handing;
  private volatile @Nullable Lease lease;

  private Waiter(
      ReaderPool pool, PgSettings settings, long waitNanos, CoreSubscriber<? super Lease> actual) {
    this.pool = pool;
    this.settings = settings;
    this.waitNanos = waitNanos;
    this.actual = actual;
  }

  /** A lease within that time, or a RefusedException. */
  static Mono<Lease> within(Duration budget, PgSettings settings, ReaderPool pool) {
    Duration bound = settings.acquireTimeout();
    long nanos = (budget.compareTo(bound) < 0 ? budget : bound).toNanos();
    return new Mono<>() {
      @Override
      public void subscribe(CoreSubscriber<? super Lease> actual) {
        actual.onSubscribe(new Waiter(pool, settings, nanos, actual));
      }
    };
  }

  // ---- downstream

  @Override
  public void request(long n) {
    if (!Operators.validate(n) || !state.compareAndSet(NEW, WAITING)) {
      return;
    }
    pool.borrow(this);
    if (state.get() == DONE) {
      return; // served from what was idle: no timer, no queue
    }
    RouteReason refused = pool.slots().enter(this);
    entered = true;
    if (refused != null) {
      fail(refused, "as many reads wait as may", null);
    } else if (waitNanos <= 0) {
      run();
    } else if (state.get() != DONE) {
      timer = settings.scheduler().schedule(this, waitNanos, TimeUnit.NANOSECONDS);
    }
    if (state.get() == DONE) {
      tidy();
    }
  }

  @Override
  public void cancel() {
    left = true;
    if (state.getAndSet(DONE) != DONE) {
      tidy();
      cancelUpstream();
      return;
    }
    Lease delivered = lease;
    if (delivered != null && !handing) {
      delivered.releaseUntouched();
    }
  }

  // ---- the pool

  @Override
  public Context currentContext() {
    return Context.empty(); // a connection is nobody's: it is made and kept without the borrower's
  }

  @Override
  public void onSubscribe(Subscription s) {
    upstream = s;
    s.request(Long.MAX_VALUE);
  }

  @Override
  public void onNext(PooledRef<ReaderConnection> ref) {
    if (!state.compareAndSet(WAITING, DONE)) {
      ref.release().subscribe();
      return;
    }
    tidy();
    Lease delivered = new Lease(ref, settings, pool);
    // a cancel from within is that of an operator that has what it wants: it passes the lease on
    handing = true;
    lease = delivered;
    actual.onNext(delivered);
    handing = false;
    if (left) {
      delivered.releaseUntouched();
    }
    actual.onComplete();
  }

  @Override
  public void onComplete() {
    // follows every connection
  }

  @Override
  public void onError(Throwable shutDown) {
    fail(RouteReason.READER_DIAL_FAILED, "the reader's pool is closed", shutDown);
  }

  /** The acquire timeout. */
  @Override
  public void run() {
    fail(RouteReason.READER_ACQUIRE_TIMEOUT, "no connection within the acquire timeout", null);
  }

  void fail(RouteReason reason, String message, @Nullable Throwable cause) {
    if (state.getAndSet(DONE) != DONE) {
      tidy();
      cancelUpstream();
      actual.onError(new RefusedException(reason, pool.name() + ": " + message, cause));
    }
  }

  private void cancelUpstream() {
    Subscription s = upstream;
    if (s != null) {
      s.cancel();
    }
  }

  private void tidy() {
    if (entered) {
      pool.slots().leave(this);
    }
    Disposable running = timer;
    if (running != null) {
      running.dispose();
    }
  }
}
