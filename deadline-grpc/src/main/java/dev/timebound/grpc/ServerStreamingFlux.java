package dev.timebound.grpc;

import io.grpc.CallOptions;
import org.jspecify.annotations.Nullable;
import reactor.core.CoreSubscriber;
import reactor.core.Scannable;
import reactor.core.publisher.Flux;

/** Each subscription is one server streaming call. */
final class ServerStreamingFlux<Q, R> extends Flux<R> implements Scannable {
  private final CallStarter<Q, R> starter;
  private final Q request;
  private final long requestAhead;

  private ServerStreamingFlux(CallStarter<Q, R> starter, Q request, long requestAhead) {
    this.starter = starter;
    this.request = request;
    this.requestAhead = requestAhead;
  }

  static <Q, R> Flux<R> of(CallStarter<Q, R> starter, Q request, long requestAhead) {
    return onAssembly(new ServerStreamingFlux<>(starter, request, requestAhead));
  }

  @Override
  public void subscribe(CoreSubscriber<? super R> actual) {
    CallSetup setup = starter.setup(actual);
    if (setup != null) {
      MessageSizes sizes = MessageSizes.ofResponses();
      CallOptions options = setup.options().withStreamTracerFactory(sizes);
      new StreamSubscription<Q, R>(actual, setup, request, sizes, requestAhead)
          .start(starter, options);
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
