package dev.timebound.grpc;

import dev.timebound.deadline.Deadline;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.util.context.ContextView;

/**
 * The calls that a stub makes for one subscription: the interceptor bounds each by the Context's
 * deadline and knows those that are open, so that the subscription's cancel reaches them. (GR-2)
 */
final class BoundCalls implements ClientInterceptor {
  private final ContextView context;
  private final Deadline deadline;
  private final Set<ClientCall<?, ?>> open = ConcurrentHashMap.newKeySet();

  /** Ends what the stub still sends. */
  private final Sinks.Empty<Void> end = Sinks.empty();

  private volatile boolean cancelled;

  /** Of the call made last; null before the first. */
  private volatile @Nullable DeadlineBound bound;

  BoundCalls(ContextView context, Deadline deadline) {
    this.context = context;
    this.deadline = deadline;
  }

  /**
   * The request with the Context that the stub keeps from it, ended where the call is cancelled.
   */
  <Q> Mono<Q> request(Mono<Q> request) {
    return request.takeUntilOther(end.asMono()).contextWrite(context);
  }

  <Q> Flux<Q> request(Flux<Q> request) {
    return request.takeUntilOther(end.asMono()).contextWrite(context);
  }

  @Override
  public <Q, R> ClientCall<Q, R> interceptCall(
      MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
    DeadlineBound own = DeadlineBound.of(method.getFullMethodName(), deadline, options);
    bound = own;
    return new BoundCall<>(
        next.newCall(method, own.apply(options).withOption(GrpcCalls.CONTEXT, context)));
  }

  /** From any thread. */
  void cancel() {
    cancelled = true;
    // The calls before the requests: a request that ended first would look whole to the server.
    open.forEach(call -> call.cancel("cancelled by the subscriber", null));
    end.tryEmitEmpty();
  }

  Throwable failure(Throwable error) {
    DeadlineBound last = bound;
    return last == null ? error : last.failure(Status.fromThrowable(error).getCode(), error);
  }

  private final class BoundCall<Q, R> extends SimpleForwardingClientCall<Q, R> {
    BoundCall(ClientCall<Q, R> call) {
      super(call);
    }

    @Override
    public void start(Listener<R> listener, Metadata headers) {
      if (cancelled) {
        return; // nobody is left to tell
      }
      super.start(
          new SimpleForwardingClientCallListener<>(listener) {
            @Override
            public void onClose(Status status, Metadata trailers) {
              open.remove(BoundCall.this);
              // The stub would report the close that its own cancel brings as an error dropped.
              if (!cancelled) {
                super.onClose(status, trailers);
              }
            }
          },
          headers);
      open.add(this);
      if (cancelled) {
        cancel("cancelled while it started", null);
      }
    }

    @Override
    public void request(int messages) {
      unlessCancelled(() -> super.request(messages));
    }

    @Override
    public void sendMessage(Q message) {
      unlessCancelled(() -> super.sendMessage(message));
    }

    @Override
    public void halfClose() {
      unlessCancelled(super::halfClose);
    }

    /** The stub knows nothing of the cancel, and a call that was cancelled throws. */
    private void unlessCancelled(Runnable step) {
      if (cancelled) {
        return;
      }
      try {
        step.run();
      } catch (IllegalStateException e) {
        if (!cancelled) {
          throw e;
        }
      }
    }
  }
}
