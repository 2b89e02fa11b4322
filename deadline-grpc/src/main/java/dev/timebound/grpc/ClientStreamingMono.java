package dev.timebound.grpc;

import io.grpc.CallOptions;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.CoreSubscriber;
import reactor.core.Scannable;
import reactor.core.publisher.Mono;

/** Each subscription is one client streaming call, and one subscription of the requests. */
final class ClientStreamingMono<Q, R> extends Mono<R> implements Scannable {
  private final CallStarter<Q, R> starter;
  private final Publisher<? extends Q> requests;
  private final long requestAhead;

  private ClientStreamingMono(
      CallStarter<Q, R> starter, Publisher<? extends Q> requests, long requestAhead) {
    this.starter = starter;
    this.requests = requests;
    this.requestAhead = requestAhead;
  }

  static <Q, R> Mono<R> of(
      CallStarter<Q, R> starter, Publisher<? extends Q> requests, long requestAhead) {
    return onAssembly(new ClientStreamingMono<>(starter, requests, requestAhead));
  }

  @Override
  public void subscribe(CoreSubscriber<? super R> actual) {
    CallSetup setup = starter.setup(actual);
    if (setup != null) {
      MessageSizes sizes = MessageSizes.ofRequests();
      CallOptions options = setup.options().withStreamTracerFactory(sizes);
      new UploadSubscription<Q, R>(actual, setup, requests, sizes, requestAhead)
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
