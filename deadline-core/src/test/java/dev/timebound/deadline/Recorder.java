package dev.timebound.deadline;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.util.context.Context;

/** A subscriber that records what it gets and notices signals that overlap or follow an end. */
final class Recorder<T> implements CoreSubscriber<T> {
  final List<T> items = Collections.synchronizedList(new ArrayList<>());
  final List<Object> ends = Collections.synchronizedList(new ArrayList<>());
  final List<String> faults = new CopyOnWriteArrayList<>();
  private final AtomicInteger inside = new AtomicInteger();
  private final long initialDemand;
  private final Context context;
  private volatile @Nullable Subscription subscription;

  Recorder() {
    this(Long.MAX_VALUE, Context.empty());
  }

  Recorder(long initialDemand, Context context) {
    this.initialDemand = initialDemand;
    this.context = context;
  }

  Subscription subscription() {
    return Objects.requireNonNull(subscription);
  }

  @Override
  public Context currentContext() {
    return context;
  }

  @Override
  public void onSubscribe(Subscription s) {
    signal(
        "onSubscribe",
        () -> {
          subscription = s;
          if (initialDemand > 0) {
            s.request(initialDemand);
          }
        });
  }

  @Override
  public void onNext(T item) {
    signal("onNext", () -> items.add(item));
  }

  @Override
  public void onError(Throwable error) {
    signal("onError", () -> ends.add(error));
  }

  @Override
  public void onComplete() {
    signal("onComplete", () -> ends.add("complete"));
  }

  private void signal(String name, Runnable action) {
    if (!ends.isEmpty()) {
      faults.add(name + " after " + ends);
    }
    if (inside.getAndIncrement() != 0) {
      faults.add(name + " overlaps");
    }
    action.run();
    inside.decrementAndGet();
  }
}
