package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.STREAM;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static dev.timebound.grpc.BridgeServer.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.grpc.BridgeServer.Script;
import dev.timebound.grpc.BridgeServer.Transport;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;

class GrpcCallsTest {
  private static final Duration LONG = Duration.ofSeconds(20);

  @BeforeAll
  static void neverForEver() {
    StepVerifier.setDefaultTimeout(LONG);
  }

  @AfterAll
  static void back() {
    StepVerifier.resetDefaultTimeout();
  }

  private static Mono<byte[]> unary(Channel channel) {
    return GrpcCalls.unary(channel, UNARY, CallOptions.DEFAULT, REQUEST);
  }

  private static Flux<byte[]> stream(Channel channel) {
    return GrpcCalls.serverStreaming(channel, STREAM, CallOptions.DEFAULT, REQUEST);
  }

  @Nested
  @DisplayName("GR-1 answers")
  class Answers {
    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 a unary call is a Mono of its answer")
    void unaryAnswer(Transport transport) {
      try (var server = new BridgeServer(transport, reply -> reply.message(reply.request).ok())) {
        assertThat(unary(server.channel).block(LONG)).isEqualTo(REQUEST);
        server.assertNothingOpen();
      }
    }

    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 a stream is a Flux of its messages, whatever is asked for at a time")
    void streamAnswer(Transport transport) {
      try (var server = new BridgeServer(transport, Script.messages(5000, 100))) {
        StepVerifier.create(stream(server.channel)).expectNextCount(5000).verifyComplete();
        StepVerifier.create(stream(server.channel).limitRate(7))
            .expectNextCount(5000)
            .verifyComplete();
        StepVerifier.create(stream(server.channel).limitRate(1))
            .expectNextCount(5000)
            .verifyComplete();
        server.assertNothingOpen();
      }
    }

    @Test
    @DisplayName("GR-1 an empty stream completes, asked or not")
    void emptyStream() {
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(0, 0))) {
        Probe<byte[]> probe = new Probe<>();
        stream(server.channel).subscribe(probe);
        await("completion", () -> probe.completed);
        assertThat(server.asked).hasValue(0);
      }
    }

    @Test
    @DisplayName("GR-1 subscribing on a thread that must not block is no blocking call")
    void fromNonBlockingThread() {
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(500, 100))) {
        StepVerifier.create(
                Flux.range(0, 20)
                    .flatMap(
                        i ->
                            stream(server.channel)
                                .subscribeOn(Schedulers.parallel())
                                .publishOn(Schedulers.parallel())))
            .expectNextCount(10_000)
            .verifyComplete();
      }
    }
  }

  @Nested
  @DisplayName("GR-1 cancel")
  class Cancel {
    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 before any answer: of a unary call and of a stream reaches the server")
    void beforeHeaders(Transport transport) {
      try (var server = new BridgeServer(transport, Script.silent())) {
        var one = unary(server.channel).subscribe();
        var many = stream(server.channel).subscribe();
        await("two calls", () -> server.open.get() == 2);
        one.dispose();
        many.dispose();
        server.assertNothingOpen();
        assertThat(server.cancelled).hasValue(2);
      }
    }

    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 after the headers, and in mid stream, reaches the server")
    void midStream(Transport transport) {
      Script silentAfterOne = reply -> reply.headers().message(new byte[] {7});
      try (var server = new BridgeServer(transport, silentAfterOne)) {
        Probe<byte[]> probe = new Probe<>();
        stream(server.channel).subscribe(probe);
        probe.request(5);
        await("the message", () -> probe.got.size() == 1);
        probe.cancel();
        probe.cancel();
        server.assertNothingOpen();
        assertThat(server.cancelled).hasValue(1);
        assertThat(probe.isDone()).isFalse();
      }
    }

    @Test
    @DisplayName("GR-1 by an operator downstream (take, timeout) reaches the server")
    void byOperators() {
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(1_000_000, 10))) {
        assertThat(stream(server.channel).take(3).collectList().block(LONG)).hasSize(3);
        server.assertNothingOpen();
      }
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        StepVerifier.create(unary(server.channel).timeout(Duration.ofMillis(50)))
            .verifyError(java.util.concurrent.TimeoutException.class);
        server.assertNothingOpen();
      }
    }

    @Test
    @DisplayName("GR-1 in onSubscribe: no call is made")
    void inOnSubscribe() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      probe.onSubscribed = Probe::cancel;
      stream(fake).subscribe(probe);
      unary(fake).subscribe(newCancelled());
      assertThat(fake.calls).isEmpty();
    }

    private Probe<byte[]> newCancelled() {
      Probe<byte[]> probe = new Probe<>();
      probe.onSubscribed = Probe::cancel;
      return probe;
    }

    @Test
    @DisplayName("GR-1 while the call starts: it is cancelled once it has started")
    void whileStarting() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      probe.onSubscribed = p -> p.request(1);
      fake.whileSending = probe::cancel;
      stream(fake).subscribe(probe);
      assertThat(fake.only().cancels).hasValue(1);
      assertThat(fake.only().asked).hasValue(0);
      fake.only().close(Status.CANCELLED);
      assertThat(probe.isDone()).isFalse();
    }

    @Test
    @DisplayName("GR-1 what is at hand or still comes in goes to the discard hook")
    void discards() {
      FakeCalls fake = new FakeCalls();
      List<byte[]> discarded = new CopyOnWriteArrayList<>();
      Probe<byte[]> probe = new Probe<>();
      stream(fake).doOnDiscard(byte[].class, discarded::add).subscribe(probe);
      probe.request(1);
      fake.only().deliver(new byte[] {1});
      fake.only().deliver(new byte[] {2}); // asked for ahead, held
      probe.cancel();
      fake.only().deliver(new byte[] {3});
      fake.only().close(Status.CANCELLED);
      assertThat(probe.got).hasSize(1);
      assertThat(discarded).extracting(bytes -> (int) bytes[0]).containsExactly(2, 3);
      assertThat(probe.isDone()).isFalse();
      assertThat(fake.only().cancels).hasValue(1);
    }

    @Test
    @DisplayName("GR-1 a unary answer that its cancel overtook goes to the discard hook")
    void discardsUnary() {
      FakeCalls fake = new FakeCalls();
      List<byte[]> discarded = new CopyOnWriteArrayList<>();
      Probe<byte[]> probe = new Probe<>();
      unary(fake).doOnDiscard(byte[].class, discarded::add).subscribe(probe);
      probe.request(1);
      fake.only().deliver(REQUEST);
      probe.cancel();
      fake.only().close(Status.OK);
      assertThat(discarded).containsExactly(REQUEST);
      assertThat(probe.got).isEmpty();
      assertThat(probe.isDone()).isFalse();
    }

    @Test
    @DisplayName("GR-1 a subscriber that throws gets nothing more and leaves no call")
    void subscriberThatThrows() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      probe.onEach =
          p -> {
            throw new IllegalStateException("broken subscriber");
          };
      stream(fake).subscribe(probe);
      probe.request(10);
      assertThatThrownBy(() -> fake.only().deliver(REQUEST)).hasMessage("broken subscriber");
      assertThat(fake.only().cancels).hasValue(1);
      fake.only().deliver(REQUEST);
      fake.only().close(Status.CANCELLED);
      assertThat(probe.got).hasSize(1);
      assertThat(probe.isDone()).isFalse();
    }
  }

  @Nested
  @DisplayName("GR-1 resubscription")
  class Resubscription {
    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 retry makes a new call each time, of both kinds")
    void retry(Transport transport) {
      AtomicInteger calls = new AtomicInteger();
      Script thirdWorks =
          reply -> {
            if (calls.incrementAndGet() % 3 == 0) {
              reply.message(REQUEST).ok();
            } else {
              reply.close(Status.UNAVAILABLE, new Metadata());
            }
          };
      try (var server = new BridgeServer(transport, thirdWorks)) {
        assertThat(unary(server.channel).retry(2).block(LONG)).isEqualTo(REQUEST);
        assertThat(stream(server.channel).retry(2).collectList().block(LONG)).hasSize(1);
        assertThat(server.started).hasValue(6);
        server.assertNothingOpen();
      }
    }

    @Test
    @DisplayName("GR-1 two subscribers at once have a call each, and an attempt each")
    void independent() {
      FakeCalls fake = new FakeCalls();
      Flux<byte[]> stream = stream(fake);
      Probe<byte[]> first = new Probe<>();
      Probe<byte[]> second = new Probe<>();
      stream.subscribe(first);
      stream.subscribe(second);
      assertThat(fake.calls).hasSize(2);
      assertThat(fake.calls.get(0).options.getOption(CallAttempt.KEY))
          .isNotNull()
          .isNotSameAs(fake.calls.get(1).options.getOption(CallAttempt.KEY));
      second.request(1);
      fake.calls.get(1).deliver(REQUEST);
      assertThat(second.got).hasSize(1);
      assertThat(first.got).isEmpty();
      assertThat(fake.calls.get(0).asked).hasValue(0);
    }
  }
}
