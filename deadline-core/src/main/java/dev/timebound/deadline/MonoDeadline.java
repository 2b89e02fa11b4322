package dev.timebound.deadline;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Scannable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoOperator;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/** Enforces a {@link Bound} on a Mono (DL-4), at no more than the cost of a timeout (DL-9). */
final class MonoDeadline<T> extends MonoOperator<T, T> {
  private final Bound bound;

  MonoDeadline(Mono<? extends T> source, Bound bound) {
    super(source);
    this.bound = bound;
  }

  @Override
  public void subscribe(CoreSubscriber<? super T> actual) {
    Context context = actual.currentContext();
    Deadline outer = Deadlines.current(context);
    Deadline deadline = bound.under(outer);
    if (deadline.isNone()) {
      source.subscribe(actual);
      return;
    }
    Context inner = deadline == outer ? context : context.put(Deadline.class, deadline);
    Bounded<T> bounded = new Bounded<>(actual, inner, deadline, bound, source);
    // Downstream has its subscription before the timer runs, so that an expiry can be signalled
    // at any time, even while upstream blocks in its subscribe.
    actual.onSubscribe(bounded);
    if (bounded.start()) {
      source.subscribe(bounded);
    }
  }

  @Override
  public @Nullable Object scanUnsafe(Attr key) {
    return key == Attr.RUN_STYLE ? Attr.RunStyle.SYNC : super.scanUnsafe(key);
  }

  /**
   * The subscription. Whoever sets {@link #ENDED} first (a signal, the timer, a cancel, a bad
   * request) decides; the value is a terminal signal too, so nothing else needs serialising.
   */
  static final class Bounded<T> extends SharedTimer.Waiter
      implements CoreSubscriber<T>, Subscription, Scannable {
    private static final int ENDED = 1;
    private static final int REQUESTED = 2;
    private static final int SUBSCRIBED = 4;
    private static final VarHandle STATE;

    static {
      try {
        STATE = MethodHandles.lookup().findVarHandle(Bounded.class, "state", int.class);
      } catch (ReflectiveOperationException e) {
        throw new ExceptionInInitializerError(e);
      }
    }

    private final CoreSubscriber<? super T> actual;
    private final Context context;
    private final Deadline deadline;
    private final Bound bound;
    private final Mono<?> source;
    private volatile int state;

    /** Written before SUBSCRIBED is set, read after. */
    private @Nullable Subscription upstream;

    Bounded(
        CoreSubscriber<? super T> actual,
        Context context,
        Deadline deadline,
        Bound bound,
        Mono<?> source) {
      this.actual = actual;
      this.context = context;
      this.deadline = deadline;
      this.bound = bound;
      this.source = source;
    }

    /** Starts the timer; false where it is over before anything was subscribed. */
    boolean start() {
      if (isEnded()) {
        return false;
      }
      SharedTimer timer = deadline.timer();
      boolean inTime = timer.add(this);
      if (isEnded()) {
        timer.remove(this); // a cancel may have come before the timer knew this one
        return false;
      }
      return inTime;
    }

    @Override
    public Context currentContext() {
      return context;
    }

    @Override
    public void onSubscribe(Subscription s) {
      if (!Operators.validate(upstream, s)) {
        return;
      }
      upstream = s;
      int before = set(SUBSCRIBED);
      if ((before & ENDED) != 0) {
        s.cancel();
      } else if ((before & REQUESTED) != 0) {
        s.request(Long.MAX_VALUE);
      }
    }

    @Override
    public void onNext(T value) {
      if (end()) {
        actual.onNext(value);
        actual.onComplete();
      } else {
        Operators.onNextDropped(value, context);
      }
    }

    @Override
    public void onComplete() {
      if (!isEnded() && end()) {
        actual.onComplete();
      }
    }

    @Override
    public void onError(Throwable error) {
      if (end()) {
        actual.onError(bound.named(error, deadline));
      } else if (!(error instanceof DeadlineExceededException)) {
        Operators.onErrorDropped(error, context);
      }
    }

    @Override
    public void request(long n) {
      if (n <= 0) {
        fail(GuardedSubscriber.nonPositive(n));
        return;
      }
      if ((state & REQUESTED) != 0) {
        return;
      }
      int before = set(REQUESTED);
      Subscription s = upstream;
      if (before == SUBSCRIBED && s != null) {
        s.request(Long.MAX_VALUE);
      }
    }

    @Override
    public void cancel() {
      int before = set(ENDED);
      if ((before & ENDED) == 0) {
        deadline.timer().remove(this);
        cancelUpstream(before);
      }
    }

    @Override
    boolean expire() {
      int before = set(ENDED);
      if ((before & ENDED) == 0) {
        cancelUpstream(before);
        actual.onError(bound.exceeded(Scannable.from(source), deadline));
      }
      return true;
    }

    @Override
    void reject(Throwable cause) {
      fail(cause);
    }

    private void fail(Throwable cause) {
      int before = set(ENDED);
      if ((before & ENDED) == 0) {
        deadline.timer().remove(this);
        cancelUpstream(before);
        actual.onError(cause);
      }
    }

    private boolean end() {
      if ((set(ENDED) & ENDED) != 0) {
        return false;
      }
      deadline.timer().remove(this);
      return true;
    }

    private void cancelUpstream(int stateBefore) {
      Subscription s = upstream;
      if ((stateBefore & SUBSCRIBED) != 0 && s != null) {
        s.cancel();
      }
    }

    private boolean isEnded() {
      return (state & ENDED) != 0;
    }

    private int set(int flag) {
      return (int) STATE.getAndBitwiseOr(this, flag);
    }

    @Override
    public @Nullable Object scanUnsafe(Attr key) {
      if (key == Attr.PARENT) {
        return upstream;
      }
      if (key == Attr.ACTUAL) {
        return actual;
      }
      if (key == Attr.TERMINATED) {
        return isEnded();
      }
      return key == Attr.RUN_STYLE ? Attr.RunStyle.SYNC : null;
    }
  }
}
