package dev.timebound.pg;

import io.r2dbc.spi.Result;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.util.context.Context;

/**
 * A statement's results, taken in to the end where the caller leaves before they have come. The
 * driver does that itself when it is cancelled, but lets Reactor log what the statement ends with,
 * at ERROR and with its stack, for every statement that was cancelled on purpose.
 */
final class DrainedResults extends Flux<Result> {
  private final Publisher<? extends Result> source;

  DrainedResults(Publisher<? extends Result> source) {
    this.source = source;
  }

  @Override
  public void subscribe(CoreSubscriber<? super Result> actual) {
    source.subscribe(new Draining(actual));
  }

  private static final class Draining implements CoreSubscriber<Result>, Subscription {
    private final CoreSubscriber<? super Result> actual;
    private @Nullable Subscription upstream;
    private volatile boolean left;

    Draining(CoreSubscriber<? super Result> actual) {
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
    public void onNext(Result result) {
      if (left) {
        Flux.from(result.getRowsUpdated()).subscribe(n -> {}, e -> {});
      } else {
        actual.onNext(result);
      }
    }

    @Override
    public void onError(Throwable e) {
      if (!left) {
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
      left = true;
      request(Long.MAX_VALUE);
    }
  }
}
