package dev.timebound.cas;

import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.FluxOperator;

/**
 * Tells a subscriber that asks for none, or fewer, that this is an error (Reactive Streams 3.9).
 * Reactor does so for others' subscribers; for those of its own kind, which bring a Context, its
 * operators only log it, and such a reader would wait for ever.
 */
final class StrictDemand<T> extends FluxOperator<T, T> {
  StrictDemand(Flux<? extends T> source) {
    super(source);
  }

  @Override
  public void subscribe(CoreSubscriber<? super T> actual) {
    // As one of the others' kind, with the Context put back in.
    source.contextWrite(actual.currentContext()).subscribe(new Foreign<>(actual));
  }

  private record Foreign<T>(CoreSubscriber<? super T> actual) implements Subscriber<T> {
    @Override
    public void onSubscribe(Subscription subscription) {
      actual.onSubscribe(subscription);
    }

    @Override
    public void onNext(T value) {
      actual.onNext(value);
    }

    @Override
    public void onError(Throwable failure) {
      actual.onError(failure);
    }

    @Override
    public void onComplete() {
      actual.onComplete();
    }
  }
}
