package dev.timebound.pg;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.util.context.Context;

/**
 * What the driver brings, taken in to its end where the caller leaves before. The driver does that
 * itself when it is cancelled, but not well: it leaks the buffers of rows that it held for a caller
 * who had not asked for them yet, and lets Reactor log what the statement ends with, at ERROR and
 * with its stack, for every statement that was cancelled on purpose. For one subscriber.
 */
final class Drained<T> extends Flux<T> {
  /** Whether the caller has left: what a row is mapped to then, nobody sees. */
  static final class Left {
    private volatile boolean left;

    boolean isLeft() {
      return left;
    }
  }

  private final Publisher<? extends T> source;
  private final Left left;
  private final Consumer<? super T> late;

  /**
   * @param left told when the caller leaves, before anything that comes after it
   * @param late what to do with each item that comes after the caller has left
   */
  Drained(Publisher<? extends T> source, Left left, Consumer<? super T> late) {
    this.source = source;
    this.left = left;
    this.late = late;
  }

  /**
   * A statement's results; those that come late are taken in whole. One that fetches its rows in
   * portions is left to the driver: see {@link DrainedResult}.
   */
  static Flux<Result> results(Execution what, Connection on) {
    // what cannot even be sent, for its bindings say, fails as what was sent does
    return Flux.defer(
        () ->
            what.isStreamed()
                ? Flux.from(what.on(on))
                : new Drained<Result>(
                    what.on(on),
                    new Left(),
                    result -> Flux.from(result.getRowsUpdated()).subscribe(n -> {}, e -> {})));
  }

  @Override
  public void subscribe(CoreSubscriber<? super T> actual) {
    source.subscribe(new Draining<T>(actual, left, late));
  }

  private static final class Draining<T> implements CoreSubscriber<T>, Subscription {
    private final CoreSubscriber<? super T> actual;
    private final Left left;
    private final Consumer<? super T> late;
    private @Nullable Subscription upstream;

    Draining(CoreSubscriber<? super T> actual, Left left, Consumer<? super T> late) {
      this.actual = actual;
      this.left = left;
      this.late = late;
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
      if (left.left) {
        late.accept(item);
      } else {
        actual.onNext(item);
      }
    }

    @Override
    public void onError(Throwable e) {
      if (!left.left) {
        actual.onError(e);
      }
    }

    @Override
    public void onComplete() {
      if (!left.left) {
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
      left.left = true;
      request(Long.MAX_VALUE);
    }
  }
}
