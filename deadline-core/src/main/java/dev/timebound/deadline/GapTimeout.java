package dev.timebound.deadline;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.CoreSubscriber;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.Scannable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.FluxOperator;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoOperator;
import reactor.core.publisher.Operators;
import reactor.core.scheduler.Scheduler;
import reactor.util.context.Context;

/**
 * Fails a sequence that sends nothing though it was asked (DL-6).
 *
 * @param gap nanoseconds, above 0
 */
record GapTimeout(long gap, @Nullable String operation) {
  <T> Publisher<T> apply(Publisher<T> source) {
    return source instanceof Mono<T> mono
        ? new OnMono<>(mono, this)
        : new OnFlux<>(Flux.from(source), this);
  }

  private static final class OnMono<T> extends MonoOperator<T, T> {
    private final GapTimeout timeout;

    OnMono(Mono<? extends T> source, GapTimeout timeout) {
      super(source);
      this.timeout = timeout;
    }

    @Override
    public void subscribe(CoreSubscriber<? super T> actual) {
      Watched<T> watched = new Watched<>(actual, timeout, Scannable.from(source));
      actual.onSubscribe(watched);
      if (!watched.isEnded()) {
        source.subscribe(watched);
      }
    }
  }

  private static final class OnFlux<T> extends FluxOperator<T, T> {
    private final GapTimeout timeout;

    OnFlux(Flux<? extends T> source, GapTimeout timeout) {
      super(source);
      this.timeout = timeout;
    }

    @Override
    public void subscribe(CoreSubscriber<? super T> actual) {
      Watched<T> watched = new Watched<>(actual, timeout, Scannable.from(source));
      actual.onSubscribe(watched);
      if (!watched.isEnded()) {
        source.subscribe(watched);
      }
    }
  }

  /**
   * The subscription. A wait begins where downstream asks while it has all it asked for, or when it
   * is done with an item and has asked for more. One timer runs while a wait may be under way: it
   * looks at when the wait began and sleeps on for what is left, so that an item costs no timer.
   *
   * <p>Where many items come between two looks, items do not read the clock either. The timer looks
   * more often then, and takes the time of its look for that of the last item.
   */
  private static final class Watched<T> extends GuardedSubscriber<T> implements Runnable {
    /** Items between two looks from which on the clock is read by the looks alone. */
    private static final int FAST = 1_024;

    /** Looks in one gap while items come fast: the error may be two of them late. */
    private static final int LOOKS = 16;

    private static final VarHandle DEMAND;
    private static final VarHandle RUNNING;

    static {
      try {
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        DEMAND = lookup.findVarHandle(Watched.class, "demand", long.class);
        RUNNING = lookup.findVarHandle(Watched.class, "running", boolean.class);
      } catch (ReflectiveOperationException e) {
        throw new ExceptionInInitializerError(e);
      }
    }

    private final GapTimeout timeout;
    private final Scannable source;
    private final Scheduler scheduler;
    private final Disposable.Swap timer = Disposables.swap();

    /** All that was ever asked for; Long.MAX_VALUE is without bound. */
    private volatile long demand;

    /** Items that came; written by upstream's thread only. */
    private volatile long received;

    /** When downstream last asked with nothing outstanding, on the scheduler's clock. */
    private volatile long askedAt;

    /** When downstream was last done with an item. */
    private volatile long handedOnAt;

    private volatile boolean running;

    /** Items come fast: they do not read the clock. */
    private volatile boolean fast;

    /** What had been received at the last look; the timer's own. */
    private volatile long seen;

    /** When the timer last looked while items came fast; its own. */
    private volatile long lookedAt;

    Watched(CoreSubscriber<? super T> actual, GapTimeout timeout, Scannable source) {
      this(actual, actual.currentContext(), timeout, source);
    }

    private Watched(
        CoreSubscriber<? super T> actual, Context context, GapTimeout timeout, Scannable source) {
      super(actual, context);
      this.timeout = timeout;
      this.source = source;
      this.scheduler = Deadlines.current(context).scheduler();
      this.handedOnAt = now();
      this.askedAt = handedOnAt;
      this.lookedAt = handedOnAt;
    }

    @Override
    void asked(long n) {
      long before;
      do {
        before = demand;
        if (before == Long.MAX_VALUE) {
          return;
        }
        if (before <= received) {
          askedAt = now(); // the wait begins; told before the demand is, lest it seem an old one
        }
      } while (!DEMAND.compareAndSet(this, before, Operators.addCap(before, n)));
      if (!running && RUNNING.compareAndSet(this, false, true)) {
        sleep(timeout.gap);
      }
    }

    @Override
    @SuppressWarnings("NonAtomicVolatileUpdate") // one writer
    void receiving() {
      received++;
    }

    @Override
    void handedOn() {
      if (!fast) {
        handedOnAt = now();
      }
    }

    @Override
    void ended() {
      timer.dispose();
    }

    @Override
    public void run() {
      if (isEnded()) {
        return;
      }
      if (demand <= received) {
        running = false; // nobody asks: the next request starts it again
        if (demand <= received || !RUNNING.compareAndSet(this, false, true)) {
          return;
        }
      }
      long count = received;
      boolean emitting = isEmitting();
      boolean wasFast = fast;
      boolean isFast = count - seen >= FAST;
      fast = isFast;
      seen = count;
      long now = now(); // after fast was written: an item that reads the old value is older
      if (isFast || wasFast) {
        lookedAt = now;
      }
      if (isFast) {
        sleep(Math.max(1, timeout.gap / LOOKS));
        return;
      }
      long waited = Math.min(now - lookedAt, Math.min(now - askedAt, now - handedOnAt));
      if (emitting) {
        sleep(timeout.gap);
      } else if (waited < timeout.gap) {
        sleep(timeout.gap - waited);
      } else {
        String name = Bound.name(timeout.operation, source);
        fail(new GapTimeoutException(name, timeout.gap, received));
      }
    }

    private void sleep(long nanos) {
      try {
        timer.replace(scheduler.schedule(this, nanos, TimeUnit.NANOSECONDS));
      } catch (RuntimeException e) { // the scheduler takes no timer
        fail(e);
      }
    }

    private long now() {
      return scheduler.now(TimeUnit.NANOSECONDS);
    }
  }
}
