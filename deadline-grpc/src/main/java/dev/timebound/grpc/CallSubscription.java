package dev.timebound.grpc;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Exceptions;
import reactor.core.Scannable;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/**
 * One subscription, which is one call: starts it, passes demand and cancel on, and hands what
 * arrives downstream one signal at a time.
 *
 * <p>Three sides meet here: the call's listener (serial, on the call's executor), downstream's
 * requests and its cancel (any thread). Whoever raises {@link #wip} from 0 owns the drain loop
 * until it is 0 again; everything plain in the subclasses belongs to that owner. A cancel reaches
 * the call at once, whoever owns the loop.
 */
abstract class CallSubscription<Q, R> extends ClientCall.Listener<R>
    implements Subscription, Scannable {
  @SuppressWarnings("rawtypes")
  static final AtomicIntegerFieldUpdater<CallSubscription> WIP =
      AtomicIntegerFieldUpdater.newUpdater(CallSubscription.class, "wip");

  @SuppressWarnings("rawtypes")
  private static final AtomicIntegerFieldUpdater<CallSubscription> STATE =
      AtomicIntegerFieldUpdater.newUpdater(CallSubscription.class, "state");

  @SuppressWarnings("rawtypes")
  private static final AtomicLongFieldUpdater<CallSubscription> REQUESTED =
      AtomicLongFieldUpdater.newUpdater(CallSubscription.class, "requested");

  @SuppressWarnings("rawtypes")
  private static final AtomicReferenceFieldUpdater<CallSubscription, Object> END =
      AtomicReferenceFieldUpdater.newUpdater(CallSubscription.class, Object.class, "end");

  static final int ACTIVE = 0;

  /** Ends with {@link #abortCause}, ahead of whatever is at hand; the call is cancelled already. */
  static final int ABORTED = 1;

  /** No further signal downstream: cancelled by it, or its last one has been sent. */
  static final int ENDED = 2;

  /** The {@link #end} of a call that the server closed with OK. */
  static final Object COMPLETE = "OK";

  final CoreSubscriber<? super R> actual;
  private final CallSetup setup;

  /** Held by the starter until the call has been started, so that nothing is asked of it before. */
  volatile int wip = 1;

  volatile int state;

  /** All that downstream ever asked for, {@link Long#MAX_VALUE} being without bound. */
  volatile long requested;

  /** How the call ended: {@link #COMPLETE} or a Throwable. The first one stands. */
  volatile @Nullable Object end;

  private volatile @Nullable Throwable abortCause;

  /** Null until the call is started. */
  private volatile @Nullable ClientCall<Q, R> call;

  /** The drain loop's: whether the attempt has been told that downstream waits. */
  private boolean waits;

  CallSubscription(CoreSubscriber<? super R> actual, CallSetup setup) {
    this.actual = actual;
    this.setup = setup;
  }

  // --- what the kinds of calls differ in; all but the last run in the drain loop

  /** Sends the request, or has it sent from now on, on a call that has just been started. */
  abstract void send(ClientCall<Q, R> started);

  /** Does what can be done now; the subclass's state is its own here. */
  abstract void step();

  /** Drops what is held. */
  abstract void discard();

  /** Nothing more can be sent: the call is over or given up. From any thread, several times. */
  void stopSending() {}

  // --- the start

  final void start(CallStarter<Q, R> starter, CallOptions options) {
    actual.onSubscribe(this);
    if (state == ACTIVE) {
      ClientCall<Q, R> started = tryStart(starter, options);
      if (started != null) {
        try {
          send(started);
        } catch (Throwable t) {
          Exceptions.throwIfJvmFatal(t);
          couldNotSend(started, t);
        }
        call = started;
        if (state != ACTIVE) {
          started.cancel("cancelled while it started", abortCause);
        }
      }
    }
    drainLoop(1);
  }

  private @Nullable ClientCall<Q, R> tryStart(CallStarter<Q, R> starter, CallOptions options) {
    ClientCall<Q, R> made = null;
    try {
      made = starter.newCall(options);
      made.start(this, new Metadata());
      return made;
    } catch (Throwable t) {
      Exceptions.throwIfJvmFatal(t);
      if (made != null) {
        cancelQuietly(made, "the call could not be started", t);
      }
      END.compareAndSet(this, null, t);
      return null;
    }
  }

  /**
   * The close, which always comes once a call has started, tells downstream. A call that a
   * quarantine ended just now throws here too: a cancel on top would hide why it ended.
   */
  final void couldNotSend(ClientCall<Q, R> started, Throwable t) {
    if (!setup.attempt().isEnded()) {
      cancelQuietly(started, "the request could not be sent", t);
    }
    stopSending();
  }

  // --- the call's side

  @Override
  public final void onClose(Status status, Metadata trailers) {
    if (state == ACTIVE) {
      Object how = status.isOk() ? COMPLETE : setup.failure(status, trailers);
      END.compareAndSet(this, null, how);
      stopSending();
      drain();
    }
  }

  // --- downstream's side

  @Override
  public final void request(long n) {
    if (n <= 0) {
      abort(new IllegalArgumentException("request: " + n + " (expected: > 0, rule 3.9)"));
      return;
    }
    Operators.addCap(REQUESTED, this, n);
    drain();
  }

  @Override
  public final void cancel() {
    if (STATE.getAndSet(this, ENDED) == ACTIVE) {
      ClientCall<Q, R> started = call;
      if (started != null) {
        started.cancel("cancelled by the subscriber", null);
      }
    }
    stopSending();
    drain();
  }

  /** Ends the call and the subscription with an error of this side. */
  final void abort(Throwable cause) {
    abortCause = cause;
    if (STATE.compareAndSet(this, ACTIVE, ABORTED)) {
      ClientCall<Q, R> started = call;
      if (started != null) {
        started.cancel("ended by the client", cause);
      }
    }
    stopSending();
    drain();
  }

  // --- the drain loop

  final void drain() {
    if (WIP.getAndIncrement(this) == 0) {
      drainLoop(1);
    }
  }

  final void drainLoop(int seen) {
    int missed = seen;
    do {
      try {
        if (state == ACTIVE) {
          step();
        }
        if (state != ACTIVE) {
          stop();
        }
      } catch (Throwable t) {
        subscriberThrew(t);
        throw t;
      }
      missed = WIP.addAndGet(this, -missed);
    } while (missed != 0);
  }

  private void stop() {
    idle();
    discard();
    if (STATE.compareAndSet(this, ABORTED, ENDED)) {
      Throwable cause = abortCause;
      actual.onError(cause == null ? new IllegalStateException("aborted") : cause);
    }
  }

  /**
   * A subscriber must not throw (rule 2.13). One that does gets no further signal, and its call
   * does not stay open.
   */
  final void subscriberThrew(Throwable t) {
    state = ENDED;
    ClientCall<Q, R> started = call;
    if (started != null) {
      cancelQuietly(started, "the subscriber threw", t);
    }
    stopSending();
  }

  // --- for the subclasses, in the drain loop

  /** Null where the call could not be started: its end is set then. */
  final @Nullable ClientCall<Q, R> call() {
    return call;
  }

  final CallAttempt attempt() {
    return setup.attempt();
  }

  final void ask(int messages) {
    ClientCall<Q, R> started = call;
    if (started != null) {
      started.request(messages);
    }
  }

  final void waiting() {
    if (!waits) {
      waits = true;
      setup.attempt().waiting();
    }
  }

  final void idle() {
    if (waits) {
      waits = false;
      setup.attempt().idle();
    }
  }

  /** The last signal. Not sent where downstream cancelled in time. */
  final void finish(Object how) {
    idle();
    if (STATE.compareAndSet(this, ACTIVE, ENDED)) {
      if (how instanceof Throwable error) {
        actual.onError(error);
      } else {
        actual.onComplete();
      }
    }
  }

  final void drop(R message) {
    Operators.onDiscard(message, currentContext());
  }

  final Context currentContext() {
    return actual.currentContext();
  }

  private static void cancelQuietly(ClientCall<?, ?> call, String why, Throwable cause) {
    try {
      call.cancel(why, cause);
    } catch (RuntimeException e) {
      cause.addSuppressed(e);
    }
  }

  @Override
  @SuppressWarnings("rawtypes")
  public @Nullable Object scanUnsafe(Attr key) {
    if (key == Attr.ACTUAL) {
      return actual;
    }
    if (key == Attr.REQUESTED_FROM_DOWNSTREAM) {
      return requested;
    }
    if (key == Attr.TERMINATED) {
      return end != null;
    }
    if (key == Attr.ERROR) {
      return end instanceof Throwable error ? error : null;
    }
    if (key == Attr.CANCELLED) {
      return state == ENDED && end == null;
    }
    if (key == Attr.RUN_STYLE) {
      return Attr.RunStyle.ASYNC;
    }
    return null;
  }
}
