package dev.timebound.deadline;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.Exceptions;
import reactor.core.Scannable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoOperator;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/** Subscribes a second time where no answer came, and takes the first that does (DL-11). */
final class MonoHedge<T> extends MonoOperator<T, T> {
  private final Settings settings;

  /**
   * What the hedge keeps to.
   *
   * @param after nanoseconds, above 0
   * @param least nanoseconds, 0 or more
   */
  record Settings(long after, RetryBudget budget, long least, @Nullable String operation) {}

  MonoHedge(Mono<? extends T> source, Settings settings) {
    super(source);
    this.settings = settings;
  }

  @Override
  public void subscribe(CoreSubscriber<? super T> actual) {
    settings.budget.requested();
    Race<T> race = new Race<>(actual, source, settings);
    actual.onSubscribe(race);
    race.start();
  }

  @Override
  public @Nullable Object scanUnsafe(Attr key) {
    return key == Attr.RUN_STYLE ? Attr.RunStyle.ASYNC : super.scanUnsafe(key);
  }

  /**
   * The subscription of both calls. Whoever sets {@link #ENDED} first (an answer, the last error, a
   * cancel) decides.
   */
  private static final class Race<T> implements Subscription, Scannable, Runnable {
    private static final int REQUESTED = 1;

    /** The first call has been subscribed: from now on the timer may run. */
    private static final int STARTED = 2;

    private static final int ENDED = 4;
    private static final int CANCELLED = 8;

    /** The second call was made. */
    private static final int HEDGED = 16;

    private static final VarHandle STATE;
    private static final VarHandle RUNNING;

    static {
      try {
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        STATE = lookup.findVarHandle(Race.class, "state", int.class);
        RUNNING = lookup.findVarHandle(Race.class, "running", int.class);
      } catch (ReflectiveOperationException e) {
        throw new ExceptionInInitializerError(e);
      }
    }

    private final CoreSubscriber<? super T> actual;
    private final Mono<? extends T> source;
    private final Settings settings;
    private final Deadline deadline;
    private final Call<T> first = new Call<>(this);
    private final Call<T> second = new Call<>(this);
    private final Disposable.Swap timer = Disposables.swap();
    private volatile int state;

    /** Calls that may still answer; the error of the one that takes it to 0 is told. */
    private volatile int running = 1;

    Race(CoreSubscriber<? super T> actual, Mono<? extends T> source, Settings settings) {
      this.actual = actual;
      this.source = source;
      this.settings = settings;
      this.deadline = Deadlines.current(actual.currentContext());
    }

    void start() {
      if (isEnded()) {
        return;
      }
      source.subscribe(first);
      // Only now: an answer that was at hand costs no timer, and a source that blocks in its
      // subscribe is not made to block a second thread.
      if ((set(STARTED) & REQUESTED) != 0) {
        startTimer();
      }
    }

    @Override
    public void request(long n) {
      if (n <= 0) {
        refuse(GuardedSubscriber.nonPositive(n));
        return;
      }
      if ((state & REQUESTED) != 0) {
        return;
      }
      int before = set(REQUESTED);
      first.demand();
      if ((before & STARTED) != 0) {
        startTimer();
      }
    }

    @Override
    public void cancel() {
      if ((set(ENDED | CANCELLED) & ENDED) == 0) {
        stop();
      }
    }

    /** The timer: no answer came. */
    @Override
    public void run() {
      if (isEnded() || running != 1) {
        return;
      }
      long left = deadline.remainingNanos();
      if (left <= 0 || left < settings.least || !settings.budget.tryTake()) {
        return;
      }
      if (RUNNING.compareAndSet(this, 1, 2) && (set(HEDGED) & ENDED) == 0) {
        settings.budget.hedged();
        deadline.charge(operation() + " before its hedge", settings.after);
        subscribeSecond();
      }
    }

    /** One that throws here must not leave the first call waiting for it. */
    private void subscribeSecond() {
      try {
        source.subscribe(second);
      } catch (Throwable e) {
        Exceptions.throwIfJvmFatal(e);
        failed(e);
      }
    }

    void answered(Call<T> by, @Nullable T value) {
      int before = set(ENDED);
      if ((before & ENDED) != 0) {
        Operators.onDiscard(value, actual.currentContext());
        return;
      }
      if ((before & HEDGED) != 0) {
        settings.budget.hedgeEnded(by == second);
      }
      timer.dispose();
      (by == first ? second : first).cancel();
      if (value != null) {
        actual.onNext(value);
      }
      actual.onComplete();
    }

    void failed(Throwable error) {
      if (isEnded()) {
        dropped(error);
      } else if (wasLast()) {
        if ((set(ENDED) & ENDED) == 0) {
          timer.dispose();
          actual.onError(error);
        } else {
          dropped(error);
        }
      }
    }

    private boolean wasLast() {
      int before;
      do {
        before = running;
      } while (!RUNNING.compareAndSet(this, before, before - 1));
      return before == 1;
    }

    boolean isRequested() {
      return (state & REQUESTED) != 0;
    }

    private void startTimer() {
      if (isEnded()) {
        return;
      }
      try {
        timer.update(deadline.scheduler().schedule(this, settings.after, TimeUnit.NANOSECONDS));
      } catch (RuntimeException e) {
        // the scheduler takes no timer: then without a hedge
      }
    }

    private void refuse(Throwable cause) {
      if ((set(ENDED) & ENDED) == 0) {
        stop();
        actual.onError(cause);
      }
    }

    private void stop() {
      timer.dispose();
      first.cancel();
      second.cancel();
    }

    /** That the loser of a race fails is of no interest; what fails after a cancel is as ever. */
    private void dropped(Throwable error) {
      if ((state & CANCELLED) != 0) {
        Operators.onErrorDropped(error, actual.currentContext());
      }
    }

    private String operation() {
      return Bound.name(settings.operation, Scannable.from(source));
    }

    private boolean isEnded() {
      return (state & ENDED) != 0;
    }

    /** What it was before. */
    private int set(int flags) {
      int before;
      do {
        before = state;
      } while (!STATE.compareAndSet(this, before, before | flags));
      return before;
    }

    @Override
    public @Nullable Object scanUnsafe(Attr key) {
      if (key == Attr.ACTUAL) {
        return actual;
      }
      if (key == Attr.CANCELLED) {
        return (state & CANCELLED) != 0;
      }
      if (key == Attr.TERMINATED) {
        return isEnded();
      }
      return key == Attr.RUN_STYLE ? Attr.RunStyle.ASYNC : null;
    }
  }

  /** One of the two calls. */
  private static final class Call<T> implements CoreSubscriber<T>, Scannable {
    @SuppressWarnings("rawtypes")
    private static final AtomicReferenceFieldUpdater<Call, Subscription> UPSTREAM =
        AtomicReferenceFieldUpdater.newUpdater(Call.class, Subscription.class, "upstream");

    private final Race<T> race;
    private volatile @Nullable Subscription upstream;

    Call(Race<T> race) {
      this.race = race;
    }

    /** Of two that see both the subscription and the demand, both ask: it is without bound. */
    void demand() {
      Subscription s = upstream;
      if (s != null) {
        s.request(Long.MAX_VALUE);
      }
    }

    void cancel() {
      Operators.terminate(UPSTREAM, this);
    }

    @Override
    public Context currentContext() {
      return race.actual.currentContext();
    }

    @Override
    public void onSubscribe(Subscription s) {
      if (Operators.setOnce(UPSTREAM, this, s) && race.isRequested()) {
        s.request(Long.MAX_VALUE);
      }
    }

    @Override
    public void onNext(T value) {
      race.answered(this, value);
    }

    @Override
    public void onComplete() {
      race.answered(this, null);
    }

    @Override
    public void onError(Throwable error) {
      race.failed(error);
    }

    @Override
    public @Nullable Object scanUnsafe(Attr key) {
      if (key == Attr.PARENT) {
        return upstream;
      }
      if (key == Attr.ACTUAL) {
        return race;
      }
      return key == Attr.RUN_STYLE ? Attr.RunStyle.ASYNC : null;
    }
  }
}
