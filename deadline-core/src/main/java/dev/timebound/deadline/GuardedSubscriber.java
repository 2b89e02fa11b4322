package dev.timebound.deadline;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Scannable;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/**
 * Passes a sequence on and can be failed from another thread at any time, even before upstream has
 * subscribed: an error never overlaps an item that is being handed on, it follows it. Costs two
 * compare-and-sets an item.
 */
abstract class GuardedSubscriber<T> implements CoreSubscriber<T>, Subscription, Scannable {
  /** An item is being handed on; the thread that does it looks at the state afterwards. */
  private static final int EMITTING = 1;

  /** Completed, failed or cancelled: set once, and who sets it decides. */
  private static final int ENDED = 2;

  /** Ended by {@link #fail}: {@link #failure} is set. */
  private static final int FAILED = 4;

  private static final VarHandle STATE;
  private static final VarHandle DEFERRED;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      STATE = lookup.findVarHandle(GuardedSubscriber.class, "state", int.class);
      DEFERRED = lookup.findVarHandle(GuardedSubscriber.class, "deferred", long.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** What a call of {@link #fail} came to. */
  enum Failing {
    /** The sequence had ended before. */
    LATE,
    /** The error has been signalled. */
    SIGNALLED,
    /** The thread that is handing on an item signals it after that. */
    FOLLOWS
  }

  final CoreSubscriber<? super T> actual;
  private final Context context;
  private volatile int state;
  private volatile @Nullable Subscription upstream;

  /** Asked for before upstream was there. */
  private volatile long deferred;

  /** Written before FAILED is set, read after. */
  private @Nullable Throwable failure;

  GuardedSubscriber(CoreSubscriber<? super T> actual, Context context) {
    this.actual = actual;
    this.context = context;
  }

  /** Downstream asks for more; before upstream hears of it. */
  void asked(long n) {}

  /** An item has come, and is about to be handed on. */
  void receiving() {}

  /** The item has been handed on; downstream is done with it. */
  void handedOn() {}

  /** Ended, whatever way; called once, before the last signal. */
  abstract void ended();

  /** The error to hand on in place of the one that came from upstream. */
  Throwable passedOn(Throwable error) {
    return error;
  }

  /** Ends the sequence with the error and cancels upstream, unless it has ended. */
  final Failing fail(Throwable error) {
    return fail(() -> error);
  }

  /**
   * As {@link #fail(Throwable)}, with an error that is made after upstream was cancelled: what its
   * cancel charges to the ledger is told too (DL-5).
   */
  final Failing fail(Supplier<? extends Throwable> error) {
    if (((int) STATE.getAndBitwiseOr(this, ENDED) & ENDED) != 0) {
      return Failing.LATE;
    }
    ended();
    cancelUpstream();
    Throwable made = error.get();
    failure = made;
    if (((int) STATE.getAndBitwiseOr(this, FAILED) & EMITTING) != 0) {
      return Failing.FOLLOWS;
    }
    actual.onError(made);
    return Failing.SIGNALLED;
  }

  final boolean isEnded() {
    return (state & ENDED) != 0;
  }

  final boolean isEmitting() {
    return (state & EMITTING) != 0;
  }

  @Override
  public final Context currentContext() {
    return context;
  }

  @Override
  public final void onSubscribe(Subscription s) {
    if (!Operators.validate(upstream, s)) {
      return;
    }
    upstream = s;
    if (isEnded()) {
      s.cancel();
    } else {
      requestDeferred(s);
    }
  }

  @Override
  public final void onNext(T item) {
    boolean outermost = STATE.compareAndSet(this, 0, EMITTING);
    if (!outermost && isEnded()) {
      Operators.onNextDropped(item, context);
      return;
    }
    receiving();
    actual.onNext(item);
    if (outermost) {
      handedOn();
      if (!STATE.compareAndSet(this, EMITTING, 0)) {
        followUp();
      }
    }
  }

  @Override
  public final void onComplete() {
    if (end()) {
      actual.onComplete();
    }
  }

  @Override
  public final void onError(Throwable error) {
    if (end()) {
      actual.onError(passedOn(error));
    } else if (!(error instanceof DeadlineExceededException)) {
      // a deadline's end that upstream has seen too is no news to be logged as an error
      Operators.onErrorDropped(error, context);
    }
  }

  @Override
  public final void request(long n) {
    if (n <= 0) {
      fail(nonPositive(n));
      return;
    }
    asked(n);
    Subscription s = upstream;
    if (s != null) {
      s.request(n);
      return;
    }
    long before;
    do {
      before = deferred;
    } while (!DEFERRED.compareAndSet(this, before, Operators.addCap(before, n)));
    s = upstream;
    if (s != null) {
      requestDeferred(s);
    }
  }

  @Override
  public final void cancel() {
    if (end()) {
      cancelUpstream();
    }
  }

  /** What the Reactive Streams rule 3.9 asks for. */
  static IllegalArgumentException nonPositive(long n) {
    return new IllegalArgumentException("request: " + n + " (expected: > 0, Reactive Streams 3.9)");
  }

  /** An end came while the item was being handed on: of two threads the later one signals it. */
  private void followUp() {
    boolean failed = ((int) STATE.getAndBitwiseAnd(this, ~EMITTING) & FAILED) != 0;
    Throwable error = failure;
    if (failed && error != null) {
      actual.onError(error);
    }
  }

  private boolean end() {
    if (((int) STATE.getAndBitwiseOr(this, ENDED) & ENDED) != 0) {
      return false;
    }
    ended();
    return true;
  }

  private void requestDeferred(Subscription s) {
    long n = (long) DEFERRED.getAndSet(this, 0L);
    if (n > 0) {
      s.request(n);
    }
  }

  private void cancelUpstream() {
    Subscription s = upstream;
    if (s != null) {
      s.cancel();
    }
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
