package dev.timebound.deadline;

import org.jspecify.annotations.Nullable;
import reactor.core.CoreSubscriber;
import reactor.core.Scannable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.FluxOperator;
import reactor.util.context.Context;

/** Enforces a {@link Bound} on a Flux, from its subscription to its end (DL-4). */
final class FluxDeadline<T> extends FluxOperator<T, T> {
  private final Bound bound;

  FluxDeadline(Flux<? extends T> source, Bound bound) {
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
    // first downstream, then the timer, then upstream: see MonoDeadline
    actual.onSubscribe(bounded);
    if (bounded.start()) {
      source.subscribe(bounded);
    }
  }

  @Override
  public @Nullable Object scanUnsafe(Attr key) {
    return key == Attr.RUN_STYLE ? Attr.RunStyle.SYNC : super.scanUnsafe(key);
  }

  static final class Bounded<T> extends GuardedSubscriber<T> {
    private final Deadline deadline;
    private final Bound bound;
    private final Flux<?> source;
    private final SharedTimer.Waiter waiter = new Expiry();

    Bounded(
        CoreSubscriber<? super T> actual,
        Context context,
        Deadline deadline,
        Bound bound,
        Flux<?> source) {
      super(actual, context);
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
      boolean inTime = timer.add(waiter);
      if (isEnded()) {
        timer.remove(waiter); // a cancel may have come before the timer knew this one
        return false;
      }
      return inTime;
    }

    @Override
    Throwable passedOn(Throwable error) {
      return bound.named(error, deadline);
    }

    @Override
    void ended() {
      deadline.timer().remove(waiter);
    }

    private final class Expiry extends SharedTimer.Waiter {
      @Override
      boolean expire() {
        return isEnded()
            || fail(() -> bound.exceeded(Scannable.from(source), deadline)) != Failing.FOLLOWS;
      }

      @Override
      void reject(Throwable cause) {
        fail(cause);
      }
    }
  }
}
