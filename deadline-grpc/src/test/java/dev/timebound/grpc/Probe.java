package dev.timebound.grpc;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.util.context.Context;

/** A raw subscriber that keeps what it got and holds the publisher to the rules of signals. */
final class Probe<T> implements CoreSubscriber<T> {
  final List<T> got = new CopyOnWriteArrayList<>();
  final AtomicInteger inside = new AtomicInteger();
  final List<String> broken = new CopyOnWriteArrayList<>();
  Consumer<Probe<T>> onEach = probe -> {};
  Consumer<Probe<T>> onSubscribed = probe -> {};
  Context context = Context.empty();
  volatile @Nullable Throwable error;
  volatile boolean completed;
  private volatile @Nullable Subscription subscription;

  Subscription subscription() {
    Subscription s = subscription;
    if (s == null) {
      throw new IllegalStateException("no onSubscribe yet");
    }
    return s;
  }

  void request(long n) {
    subscription().request(n);
  }

  void cancel() {
    subscription().cancel();
  }

  boolean isDone() {
    return completed || error != null;
  }

  @Override
  public Context currentContext() {
    return context;
  }

  @Override
  public void onSubscribe(Subscription s) {
    if (subscription != null) {
      broken.add("onSubscribe twice");
    }
    subscription = s;
    onSubscribed.accept(this);
  }

  @Override
  public void onNext(T value) {
    enter("onNext");
    got.add(value);
    onEach.accept(this);
    inside.decrementAndGet();
  }

  @Override
  public void onError(Throwable e) {
    enter("onError");
    error = e;
    inside.decrementAndGet();
  }

  @Override
  public void onComplete() {
    enter("onComplete");
    completed = true;
    inside.decrementAndGet();
  }

  private void enter(String signal) {
    if (inside.getAndIncrement() != 0) {
      broken.add(signal + " overlaps another signal");
    }
    if (isDone()) {
      broken.add(signal + " after the last signal");
    }
  }
}
