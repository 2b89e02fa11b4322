package dev.timebound.pg;

import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Exceptions;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/**
 * A subscriber that throws has left, by Reactive Streams 2.13; but nobody cancels for it, and what
 * it threw goes up through all that is between it and the driver's connection. So it is stopped
 * here, told of as Reactor tells of an error without a receiver, and what is held is given back.
 * (PG-16)
 */
final class LeftByThrowing<T> extends Flux<T> {
  private final Flux<T> source;

  LeftByThrowing(Flux<T> source) {
    this.source = source;
  }

  @Override
  public void subscribe(CoreSubscriber<? super T> actual) {
    source.subscribe(new Watching<T>(actual));
  }

  private static final class Watching<T> implements CoreSubscriber<T>, Subscription {
    private final CoreSubscriber<? super T> actual;
    private @Nullable Subscription upstream;

    /** Only by the thread that signals. */
    private boolean left;

    Watching(CoreSubscriber<? super T> actual) {
      this.actual = actual;
    }

    @Override
    public Context currentContext() {
      return actual.currentContext();
    }

    @Override
    public void onSubscribe(Subscription s) {
      upstream = s;
      actual.onSubscribe(this);
    }

    @Override
    public void onNext(T item) {
      if (left) {
        Operators.onNextDropped(item, currentContext());
        return;
      }
      try {
        actual.onNext(item);
      } catch (Throwable e) {
        Exceptions.throwIfJvmFatal(e);
        left = true;
        cancel();
        Operators.onErrorDropped(e, currentContext());
      }
    }

    @Override
    public void onError(Throwable e) {
      if (left) {
        Operators.onErrorDropped(e, currentContext());
      } else {
        actual.onError(e);
      }
    }

    @Override
    public void onComplete() {
      if (!left) {
        actual.onComplete();
      }
    }

    @Override
    public void request(long n) {
      Subscription s = upstream;
      if (s != null) {
        s.request(n);
      }
    }

    @Override
    public void cancel() {
      Subscription s = upstream;
      if (s != null) {
        s.cancel();
      }
    }
  }
}
