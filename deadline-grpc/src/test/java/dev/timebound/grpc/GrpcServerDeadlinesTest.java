package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.STREAM;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.BridgeServer.Script;
import dev.timebound.grpc.BridgeServer.Transport;
import io.grpc.CallOptions;
import io.grpc.Context;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.inprocess.InProcessChannelBuilder;
import io.grpc.inprocess.InProcessServerBuilder;
import io.grpc.stub.ServerCalls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;

@Timeout(60)
class GrpcServerDeadlinesTest {
  private static final Duration LONG = Duration.ofSeconds(20);

  /** A server whose one method of each kind is a reactor-grpc one. */
  private static final class Edge implements AutoCloseable {
    private final Server server;
    final ManagedChannel channel;

    Edge(Function<byte[], Mono<byte[]>> unary, Function<byte[], Flux<byte[]>> stream) {
      String name = InProcessServerBuilder.generateName();
      ServerServiceDefinition service =
          ServerServiceDefinition.builder("test")
              .addMethod(
                  UNARY,
                  ServerCalls.asyncUnaryCall(
                      (request, observer) ->
                          com.salesforce.reactorgrpc.stub.ServerCalls.oneToOne(
                              request,
                              observer,
                              unary,
                              com.salesforce.reactorgrpc.stub.ServerCalls::prepareError)))
              .addMethod(
                  STREAM,
                  ServerCalls.asyncServerStreamingCall(
                      (request, observer) ->
                          com.salesforce.reactorgrpc.stub.ServerCalls.oneToMany(
                              request,
                              observer,
                              stream,
                              com.salesforce.reactorgrpc.stub.ServerCalls::prepareError)))
              .build();
      try {
        server = InProcessServerBuilder.forName(name).addService(service).build().start();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      channel = InProcessChannelBuilder.forName(name).build();
    }

    static Edge unary(Function<byte[], Mono<byte[]>> unary) {
      return new Edge(unary, request -> Flux.empty());
    }

    Mono<byte[]> call() {
      return GrpcCalls.unary(channel, UNARY, CallOptions.DEFAULT, REQUEST);
    }

    @Override
    public void close() {
      channel.shutdownNow();
      server.shutdownNow();
      try {
        assertThat(channel.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
        assertThat(server.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static void assertDeadlineExceeded(Mono<byte[]> call, String description) {
    StepVerifier.create(call)
        .expectErrorSatisfies(
            e -> {
              assertThat(e).isInstanceOf(StatusRuntimeException.class);
              Status status = Status.fromThrowable(e);
              assertThat(status.getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
              assertThat(status.getDescription()).isEqualTo(description);
            })
        .verify(LONG);
  }

  @Nested
  class Through {
    @Test
    @DisplayName(
        "DL-7 the client's deadline goes through a server's method and on to the next server")
    void onward() {
      try (var next = new BridgeServer(Transport.NETTY, Script.messages(1, 1));
          var edge =
              Edge.unary(
                  request ->
                      Mono.just(request)
                          .publishOn(Schedulers.parallel()) // a thread without gRPC's Context
                          .flatMap(
                              q -> GrpcCalls.unary(next.channel, UNARY, CallOptions.DEFAULT, q))
                          .transform(GrpcServerDeadlines.fromContext()))) {
        edge.call().transform(Deadlines.within(Duration.ofMinutes(2))).block(LONG);
        edge.call().block(LONG);
        assertThat(next.deadlines)
            .singleElement()
            .satisfies(d -> assertThat(d.timeRemaining(TimeUnit.SECONDS)).isBetween(60L, 120L));
        next.assertNothingOpen();
      }
    }

    @Test
    @DisplayName("DL-7 a server's ceiling: the client can shorten it and never lengthen it")
    void ceiling() {
      List<Deadline> seen = new CopyOnWriteArrayList<>();
      try (var edge =
          Edge.unary(
              request ->
                  Deadlines.<byte[]>defer(
                          deadline -> {
                            seen.add(deadline);
                            return Mono.just(REQUEST);
                          })
                      .transform(GrpcServerDeadlines.fromContext(Duration.ofMinutes(5))))) {
        edge.call().block(LONG);
        edge.call().transform(Deadlines.within(Duration.ofHours(1))).block(LONG);
        edge.call().transform(Deadlines.within(Duration.ofMinutes(1))).block(LONG);
      }
      assertThat(seen.get(0).remaining()).isBetween(Duration.ofMinutes(4), Duration.ofMinutes(5));
      assertThat(seen.get(1).remaining()).isBetween(Duration.ofMinutes(4), Duration.ofMinutes(5));
      assertThat(seen.get(2).remaining()).isBetween(Duration.ofSeconds(30), Duration.ofMinutes(1));
      assertThatThrownBy(() -> GrpcServerDeadlines.fromContext(Duration.ZERO))
          .hasMessage("ceiling: PT0S (expected: > 0)");
    }
  }

  @Nested
  class Passed {
    @Test
    @DisplayName("DL-7 when it passes the work is cancelled and the call closes DEADLINE_EXCEEDED")
    void unary() {
      AtomicInteger cancelled = new AtomicInteger();
      try (var edge =
          Edge.unary(
              request ->
                  Mono.<byte[]>never()
                      .doOnCancel(cancelled::incrementAndGet)
                      .name("orders.get")
                      .transform(GrpcServerDeadlines.fromContext(Duration.ofMillis(50))))) {
        assertDeadlineExceeded(edge.call(), "orders.get: deadline exceeded");
        assertThat(cancelled).hasValue(1);
      }
    }

    @Test
    @DisplayName("DL-7 of a stream too, after what came in time")
    void stream() {
      try (var edge =
          new Edge(
              Mono::just,
              request ->
                  Flux.just(REQUEST)
                      .concatWith(Flux.never())
                      .transform(GrpcServerDeadlines.fromContext(Duration.ofSeconds(1))))) {
        StepVerifier.create(
                GrpcCalls.serverStreaming(edge.channel, STREAM, CallOptions.DEFAULT, REQUEST))
            .expectNextCount(1)
            .expectErrorMatches(
                e -> Status.fromThrowable(e).getCode() == Status.Code.DEADLINE_EXCEEDED)
            .verify(LONG);
      }
    }

    @Test
    @DisplayName("DL-7 a deadline further in closes the call with DEADLINE_EXCEEDED too")
    void furtherIn() {
      try (var edge =
          Edge.unary(
              request ->
                  Mono.<byte[]>never()
                      .transform(Deadlines.within(Duration.ofMillis(50), "pg.read"))
                      .transform(GrpcServerDeadlines.fromContext()))) {
        assertDeadlineExceeded(edge.call(), "pg.read: deadline exceeded");
      }
    }

    @Test
    @DisplayName("DL-7 another error stays what it is")
    void others() {
      Mono<Object> failed =
          Mono.error(new IOException("x")).transform(GrpcServerDeadlines.fromContext());
      StepVerifier.create(failed).verifyError(IOException.class);
    }
  }

  @Test
  @DisplayName(
      "DL-7 the current Context's deadline is read, none without one, a passed one as passed")
  void current() {
    assertThat(GrpcServerDeadlines.current().isNone()).isTrue();
    ScheduledExecutorService timers = Executors.newSingleThreadScheduledExecutor();
    Context.CancellableContext hour =
        Context.current().withDeadlineAfter(1, TimeUnit.HOURS, timers);
    Context.CancellableContext passed =
        Context.current().withDeadlineAfter(-1, TimeUnit.SECONDS, timers);
    try {
      hour.run(
          () ->
              assertThat(GrpcServerDeadlines.current().remaining())
                  .isBetween(Duration.ofMinutes(59), Duration.ofHours(1)));
      passed.run(
          () -> {
            assertThat(GrpcServerDeadlines.current().isExpired()).isTrue();
            StepVerifier.create(
                    Mono.fromRunnable(() -> org.assertj.core.api.Assertions.fail("begun"))
                        .transform(GrpcServerDeadlines.fromContext()))
                .expectErrorSatisfies(
                    e -> assertThat(e).hasCauseInstanceOf(DeadlineExceededException.class))
                .verify(LONG);
          });
    } finally {
      hour.cancel(null);
      passed.cancel(null);
      timers.shutdownNow();
    }
  }
}
