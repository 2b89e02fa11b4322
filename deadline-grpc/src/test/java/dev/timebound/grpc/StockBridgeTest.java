package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.STREAM;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static org.assertj.core.api.Assertions.assertThat;

import com.salesforce.reactorgrpc.stub.ClientCalls;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.BridgeServer.Script;
import dev.timebound.grpc.BridgeServer.Transport;
import io.grpc.CallOptions;
import io.grpc.Channel;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/**
 * Why there is a bridge: what reactor-grpc 1.2.4's generated client does (it calls these methods),
 * and the same on ours. Should one of the stock cases turn red with a new release, it was mended.
 */
@DisplayName("GR-1 reactor-grpc's client calls and ours, side by side")
class StockBridgeTest {
  private static final Duration LONG = Duration.ofSeconds(20);

  private static Mono<byte[]> stockUnary(Channel channel, Mono<byte[]> request) {
    return ClientCalls.oneToOne(
        request,
        (message, observer) ->
            io.grpc.stub.ClientCalls.asyncUnaryCall(
                channel.newCall(UNARY, CallOptions.DEFAULT), message, observer),
        CallOptions.DEFAULT);
  }

  private static Mono<byte[]> ourUnary(Channel channel) {
    return GrpcCalls.unary(channel, UNARY, CallOptions.DEFAULT, REQUEST);
  }

  private static void cancelOnceAtServer(BridgeServer server, Mono<byte[]> call) {
    Disposable subscription = call.subscribe();
    BridgeServer.await("the call at the server", () -> server.started.get() == 1);
    subscription.dispose();
  }

  @Nested
  @DisplayName("a unary call that is cancelled")
  class Cancel {
    @Test
    @DisplayName("stock: goes on at the server")
    void stock() {
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        cancelOnceAtServer(server, stockUnary(server.channel, Mono.just(REQUEST)));
        // a later call on the same connection has come and gone: the cancel would have come first
        cancelWithOurs(server);
        server.assertFirstGoesOn();
      }
    }

    @Test
    @DisplayName("ours: is cancelled at the server")
    void ours() {
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        cancelOnceAtServer(server, ourUnary(server.channel));
        server.assertNothingOpen();
        assertThat(server.cancelled).hasValue(1);
      }
    }

    private void cancelWithOurs(BridgeServer server) {
      Disposable second = ourUnary(server.channel).subscribe();
      BridgeServer.await("the second call", () -> server.started.get() == 2);
      second.dispose();
      BridgeServer.await("its cancel", () -> server.cancelled.get() == 1);
    }
  }

  @Nested
  @DisplayName("the subscriber's Context")
  class ContextOfTheSubscriber {
    @Test
    @DisplayName("stock: is empty in the request Mono")
    void stock() {
      try (var server = new BridgeServer(Transport.IN_PROCESS, Script.messages(1, 3))) {
        List<ContextView> seen = new CopyOnWriteArrayList<>();
        Mono<byte[]> request =
            Mono.deferContextual(
                context -> {
                  seen.add(context);
                  return Mono.just(REQUEST);
                });
        stockUnary(server.channel, request).contextWrite(Context.of("key", "value")).block(LONG);
        assertThat(seen).singleElement().matches(ContextView::isEmpty);
      }
    }

    @Test
    @DisplayName("ours: reaches interceptors, and its deadline the wire")
    void ours() {
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(1, 3))) {
        List<ContextView> seen = new CopyOnWriteArrayList<>();
        Channel channel =
            io.grpc.ClientInterceptors.intercept(
                server.channel,
                new io.grpc.ClientInterceptor() {
                  @Override
                  public <Q, R> io.grpc.ClientCall<Q, R> interceptCall(
                      io.grpc.MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
                    seen.add(options.getOption(GrpcCalls.CONTEXT));
                    return next.newCall(method, options);
                  }
                });
        ourUnary(channel)
            .contextWrite(context -> Deadlines.put(context, Deadline.after(LONG)))
            .contextWrite(Context.of("key", "value"))
            .block(LONG);
        assertThat(seen).singleElement().matches(context -> context.get("key").equals("value"));
        assertThat(server.deadlines).hasSize(1);
      }
    }
  }

  @Nested
  @DisplayName("a second subscription")
  class Resubscription {
    @Test
    @DisplayName("stock: throws NullPointerException")
    void stock() {
      try (var server = new BridgeServer(Transport.IN_PROCESS, Script.messages(1, 3))) {
        Mono<byte[]> call = stockUnary(server.channel, Mono.just(REQUEST));
        assertThat(call.block(LONG)).hasSize(3);
        assertThat(catchFrom(call)).isInstanceOf(NullPointerException.class);
      }
    }

    @Test
    @DisplayName("ours: is a second call")
    void ours() {
      try (var server = new BridgeServer(Transport.IN_PROCESS, Script.messages(1, 3))) {
        Mono<byte[]> call = ourUnary(server.channel);
        assertThat(call.block(LONG)).hasSize(3);
        assertThat(call.block(LONG)).hasSize(3);
        assertThat(server.started).hasValue(2);
      }
    }

    private Throwable catchFrom(Mono<byte[]> call) {
      return org.assertj.core.api.Assertions.catchThrowable(() -> call.block(LONG));
    }
  }

  @Nested
  @DisplayName("a stream whose subscriber asks for one message")
  class Demand {
    @Test
    @DisplayName("stock: asks the server for hundreds")
    void stock() {
      try (var server = new BridgeServer(Transport.IN_PROCESS, Script.messages(1000, 3))) {
        Flux<byte[]> stream =
            ClientCalls.oneToMany(
                Mono.just(REQUEST),
                (message, observer) ->
                    io.grpc.stub.ClientCalls.asyncServerStreamingCall(
                        server.channel.newCall(STREAM, CallOptions.DEFAULT), message, observer),
                CallOptions.DEFAULT);
        takeOne(stream);
        BridgeServer.await("what it asked for", () -> server.asked.get() >= 512);
      }
    }

    @Test
    @DisplayName("ours: asks it for two")
    void ours() {
      try (var server = new BridgeServer(Transport.IN_PROCESS, Script.messages(1000, 3))) {
        takeOne(GrpcCalls.serverStreaming(server.channel, STREAM, CallOptions.DEFAULT, REQUEST));
        assertThat(server.asked).hasValue(2);
      }
    }

    private void takeOne(Flux<byte[]> stream) {
      List<byte[]> got = new CopyOnWriteArrayList<>();
      BaseSubscriber<byte[]> one =
          new BaseSubscriber<>() {
            @Override
            protected void hookOnSubscribe(org.reactivestreams.Subscription subscription) {
              subscription.request(1);
            }

            @Override
            protected void hookOnNext(byte[] message) {
              got.add(message);
            }
          };
      stream.subscribe(one);
      BridgeServer.await("the one message", () -> got.size() == 1);
      one.cancel();
    }
  }
}
