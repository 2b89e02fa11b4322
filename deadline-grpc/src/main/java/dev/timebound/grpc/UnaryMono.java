package dev.timebound.grpc;

import org.jspecify.annotations.Nullable;
import reactor.core.CoreSubscriber;
import reactor.core.Scannable;
import reactor.core.publisher.Mono;

/** Each subscription is one unary call. */
final class UnaryMono<Q, R> extends Mono<R> implements Scannable {
  private final CallStarter<Q, R> starter;
  private final Q request;

  private UnaryMono(CallStarter<Q, R> starter, Q request) {
    this.starter = starter;
    this.request = request;
  }

  static <Q, R> Mono<R> of(CallStarter<Q, R> starter, Q request) {
    return onAssembly(new UnaryMono<>(starter, request));
  }

  @Override
  public void subscribe(CoreSubscriber<? super R> actual) {
    CallSetup setup = starter.setup(actual);
    if (setup != null) {
      new UnarySubscription<Q, R>(actual, setup, request).start(starter, setup.options());
    }
  }

  @Override
  @SuppressWarnings("rawtypes")
  public @Nullable Object scanUnsafe(Attr key) {
    if (key == Attr.NAME) {
      return starter.method().getFullMethodName(); // what a deadline's error calls it
    }
    return key == Attr.RUN_STYLE ? Attr.RunStyle.ASYNC : null;
  }
}
