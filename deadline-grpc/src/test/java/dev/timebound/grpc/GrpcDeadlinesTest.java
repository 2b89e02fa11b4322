package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.BridgeServer.Script;
import dev.timebound.grpc.BridgeServer.Transport;
import io.grpc.CallOptions;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.Exceptions;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Hooks;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;
import reactor.util.context.ContextView;
import reactor.util.retry.Retry;

/** reactor-grpc's stub bare and bound, against a server behind a socket. */
class GrpcDeadlinesTest {
  private static final Duration LONG = Duration.ofSeconds(20);
  private static final byte[] LAST = {9};

  private final List<Throwable> dropped = new CopyOnWriteArrayList<>();

  private static Mono<byte[]> bound(TestStub stub) {
    return GrpcDeadlines.bind(stub, s -> s.unary(Mono.just(REQUEST)));
  }

  private static <T> Mono<T> under(Deadline deadline, Mono<T> call) {
    return call.contextWrite(context -> Deadlines.put(context, deadline));
  }

  /** All that were sent before it have come when it is answered. */
  private static void lastAlone(BridgeServer.Reply reply) {
    if (reply.request.length == LAST.length) {
      reply.message(LAST).ok();
    }
  }

  /** A later call on the connection has come and gone: a cancel would have come before it. */
  private static void oneMoreCall(BridgeServer server, int before) {
    Disposable later =
        GrpcCalls.unary(server.channel, UNARY, CallOptions.DEFAULT, REQUEST).subscribe();
    BridgeServer.await("the later call", () -> server.started.get() == before + 1);
    later.dispose();
    BridgeServer.await("its cancel", () -> server.cancelled.get() >= 1);
  }

  @AfterEach
  void nothingWasDropped() {
    Hooks.resetOnErrorDropped();
    assertThat(dropped).isEmpty();
  }

  @Nested
  class Cancel {
    @Test
    @DisplayName("GR-2 bare: a unary call that times out goes on at the server")
    void bare() {
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        Mono<byte[]> call = new TestStub(server.channel).unary(Mono.just(REQUEST));
        assertThat(timesOut(server, call)).isInstanceOf(TimeoutException.class);
        oneMoreCall(server, 1);
        server.assertFirstGoesOn();
      }
    }

    @Test
    @DisplayName("GR-2 bound: a unary call that times out is cancelled at the server")
    void timedOut() {
      Hooks.onErrorDropped(dropped::add);
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        assertThat(timesOut(server, bound(new TestStub(server.channel))))
            .isInstanceOf(TimeoutException.class);
        server.assertNothingOpen();
        assertThat(server.cancelled).hasValue(1);
      }
    }

    @Test
    @DisplayName("GR-2 bound: a unary call that is cancelled is cancelled at the server")
    void cancelled() {
      Hooks.onErrorDropped(dropped::add);
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        Disposable call = bound(new TestStub(server.channel)).subscribe();
        BridgeServer.await("the call", () -> server.started.get() == 1);
        call.dispose();
        server.assertNothingOpen();
        assertThat(server.cancelled).hasValue(1);
      }
    }

    @Test
    @DisplayName("GR-2 bound: a stream and a stream of requests are cancelled at the server")
    void streams() {
      Hooks.onErrorDropped(dropped::add);
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        TestStub stub = new TestStub(server.channel);
        AtomicInteger requestsCancelled = new AtomicInteger();
        Disposable stream =
            GrpcDeadlines.bindMany(stub, s -> s.stream(Mono.just(REQUEST))).subscribe();
        Disposable collect =
            GrpcDeadlines.bind(
                    stub,
                    Flux.just(REQUEST)
                        .concatWith(Mono.never())
                        .doOnCancel(requestsCancelled::incrementAndGet),
                    TestStub::collect)
                .subscribe();
        BridgeServer.await("both", () -> server.started.get() == 2);
        stream.dispose();
        collect.dispose();
        server.assertNothingOpen();
        assertThat(server.cancelled).hasValue(2);
        assertThat(requestsCancelled).hasValue(1);
      }
    }

    @Test
    @DisplayName("GR-2 bound: cancelled before its request is there, no call is made")
    void beforeTheRequest() {
      Hooks.onErrorDropped(dropped::add);
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        TestStub stub = new TestStub(server.channel);
        Sinks.One<byte[]> late = Sinks.one();
        Disposable inside = GrpcDeadlines.bind(stub, s -> s.unary(late.asMono())).subscribe();
        AtomicInteger requestCancelled = new AtomicInteger();
        Disposable beside =
            GrpcDeadlines.bind(
                    stub,
                    Mono.<byte[]>never().doOnCancel(requestCancelled::incrementAndGet),
                    TestStub::unary)
                .subscribe();
        inside.dispose();
        beside.dispose();
        late.tryEmitValue(REQUEST);
        assertThat(requestCancelled).as("the request beside the stub").hasValue(1);
        oneMoreCall(server, 0);
        assertThat(server.started).as("the later call alone").hasValue(1);
      }
    }

    @Test
    @DisplayName("GR-2 bound: a cancel from another thread while it starts leaves nothing open")
    void whileItStarts() {
      Hooks.onErrorDropped(dropped::add);
      try (var server = new BridgeServer(Transport.NETTY, GrpcDeadlinesTest::lastAlone)) {
        TestStub stub = new TestStub(server.channel);
        for (int i = 0; i < 2_000; i++) {
          Sinks.One<byte[]> request = Sinks.one();
          Disposable call = GrpcDeadlines.bind(stub, s -> s.unary(request.asMono())).subscribe();
          Thread sender = new Thread(() -> request.tryEmitValue(REQUEST));
          sender.start();
          for (int spin = i % 50 * 40; spin > 0; spin--) {
            Thread.onSpinWait();
          }
          call.dispose();
          try {
            sender.join();
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
        }
        GrpcCalls.unary(server.channel, UNARY, CallOptions.DEFAULT, LAST).block(LONG);
        server.assertNothingOpen();
      }
    }

    private Throwable timesOut(BridgeServer server, Mono<byte[]> call) {
      Sinks.Empty<Void> now = Sinks.empty();
      Mono<byte[]> bounded = call.timeout(now.asMono());
      List<Throwable> errors = new CopyOnWriteArrayList<>();
      bounded.subscribe(x -> {}, errors::add);
      BridgeServer.await("the call", () -> server.started.get() == 1);
      now.tryEmitEmpty();
      BridgeServer.await("the timeout", () -> errors.size() == 1);
      return errors.get(0);
    }
  }

  @Nested
  class TheContext {
    private final List<ContextView> seen = new CopyOnWriteArrayList<>();

    private Mono<byte[]> request() {
      return Mono.deferContextual(
          context -> {
            seen.add(context);
            return Mono.just(REQUEST);
          });
    }

    @Test
    @DisplayName("GR-2 bare: the request sees an empty Context, and the server no deadline")
    void bare() {
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(1, 3))) {
        under(Deadline.after(LONG), new TestStub(server.channel).unary(request())).block(LONG);
        assertThat(seen).singleElement().matches(ContextView::isEmpty);
        assertThat(server.deadlines).isEmpty();
      }
    }

    @Test
    @DisplayName("GR-2 bound: the request sees the Context, and the server its deadline")
    void bound() {
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(1, 3))) {
        Deadline deadline = Deadline.after(Duration.ofMinutes(2));
        TestStub stub = new TestStub(server.channel);
        under(deadline, GrpcDeadlines.bind(stub, request(), TestStub::unary)).block(LONG);
        GrpcDeadlines.bindMany(stub, request(), TestStub::stream)
            .contextWrite(context -> Deadlines.put(context, deadline))
            .blockLast(LONG);
        assertThat(seen).hasSize(2).allMatch(context -> Deadlines.current(context) == deadline);
        assertThat(server.deadlines)
            .hasSize(2)
            .allMatch(d -> d.timeRemaining(TimeUnit.SECONDS) >= 90)
            .allMatch(d -> d.timeRemaining(TimeUnit.SECONDS) <= 120);
      }
    }

    @Test
    @DisplayName("GR-2 bound: the stub's own deadline counts where it is earlier")
    void stubsOwn() {
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(1, 3))) {
        TestStub stub = new TestStub(server.channel).withDeadlineAfter(90, TimeUnit.SECONDS);
        under(Deadline.after(Duration.ofMinutes(9)), GrpcDeadlinesTest.bound(stub)).block(LONG);
        assertThat(server.deadlines).allMatch(d -> d.timeRemaining(TimeUnit.SECONDS) <= 90);
      }
    }

    @Test
    @DisplayName("GR-2 bound: a deadline that passes at the call is the Context's own error")
    void passes() {
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        Mono<byte[]> call = GrpcDeadlinesTest.bound(new TestStub(server.connected().channel));
        // in the Context, with nothing that enforces it there
        assertThat(
                catchThrowable(
                    () -> under(Deadline.after(Duration.ofSeconds(1)), call).block(LONG)))
            .isInstanceOf(DeadlineExceededException.class)
            .hasMessageContaining("test/Unary");
        server.assertNothingOpen();
      }
    }

    @Test
    @DisplayName("GR-2 bound: a DEADLINE_EXCEEDED of the server's stays the server's")
    void serversOwn() {
      Script refuses =
          reply -> reply.close(Status.DEADLINE_EXCEEDED.withDescription("mine"), new Metadata());
      try (var server = new BridgeServer(Transport.NETTY, refuses)) {
        Mono<byte[]> call = GrpcDeadlinesTest.bound(new TestStub(server.channel));
        assertThat(catchThrowable(() -> under(Deadline.after(LONG), call).block(LONG)))
            .isInstanceOf(io.grpc.StatusRuntimeException.class)
            .hasMessageContaining("mine");
      }
    }

    @Test
    @DisplayName("GR-2 bound: the deadline ends a retry that holds the only thread of its timer")
    void retriedOnItsOwnThread() {
      TestStub stub = new TestStub(new FakeChannel());
      Scheduler only = Schedulers.newSingle("only");
      try {
        List<Flux<byte[]>> calls =
            List.of(
                GrpcDeadlines.<TestStub, byte[]>bind(stub, s -> Mono.error(new Exception())).flux(),
                GrpcDeadlines.bindMany(stub, s -> Flux.error(new Exception())));
        for (Flux<byte[]> call : calls) {
          StepVerifier.create(
                  call.retry()
                      .subscribeOn(only)
                      .transform(Deadlines.within(Duration.ofMillis(50), "read", only)))
              .expectError(DeadlineExceededException.class)
              .verify(LONG);
        }
      } finally {
        only.dispose();
      }
    }

    @Test
    @DisplayName("GR-2 bound: a deadline that has passed makes no call")
    void passed() {
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        AtomicInteger asked = new AtomicInteger();
        Mono<byte[]> call =
            GrpcDeadlines.bind(
                new TestStub(server.channel),
                s -> {
                  asked.incrementAndGet();
                  return s.unary(Mono.just(REQUEST));
                });
        Deadline past = Deadline.after(Duration.ZERO);
        assertThat(catchThrowable(() -> under(past, call).block(LONG)))
            .isInstanceOf(DeadlineExceededException.class);
        assertThat(asked).hasValue(0);
        assertThat(server.started).hasValue(0);
      }
    }
  }

  @Nested
  class Resubscription {
    @Test
    @DisplayName("GR-2 bare: a second subscription throws NullPointerException")
    void bare() {
      try (var server = new BridgeServer(Transport.NETTY, failsOnce(new AtomicInteger()))) {
        Mono<byte[]> call = new TestStub(server.channel).unary(Mono.just(REQUEST)).retry(1);
        Throwable error = Exceptions.unwrap(catchThrowable(() -> call.block(LONG)));
        assertThat(error).isInstanceOf(NullPointerException.class);
        assertThat(server.started).hasValue(1);
      }
    }

    @Test
    @DisplayName("GR-2 bound: a retry is a second call")
    void bound() {
      try (var server = new BridgeServer(Transport.NETTY, failsOnce(new AtomicInteger()))) {
        Mono<byte[]> call =
            GrpcDeadlinesTest.bound(new TestStub(server.channel))
                .retryWhen(
                    Retry.max(1)
                        .filter(e -> Status.fromThrowable(e).getCode() == Status.Code.UNAVAILABLE));
        assertThat(call.block(LONG)).hasSize(3);
        assertThat(server.started).hasValue(2);
        server.assertNothingOpen();
      }
    }

    private Script failsOnce(AtomicInteger calls) {
      return reply -> {
        if (calls.incrementAndGet() == 1) {
          reply.close(Status.UNAVAILABLE.withDescription("again, please"), new Metadata());
        } else {
          reply.stream(1, 3);
        }
      };
    }
  }
}
