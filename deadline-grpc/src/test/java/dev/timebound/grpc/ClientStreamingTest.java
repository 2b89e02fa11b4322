package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.COLLECT;
import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static dev.timebound.grpc.BridgeServer.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.BridgeServer.Reply;
import dev.timebound.grpc.BridgeServer.Script;
import dev.timebound.grpc.BridgeServer.Transport;
import dev.timebound.grpc.FakeCalls.FakeCall;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Hooks;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.test.publisher.TestPublisher;
import reactor.util.context.Context;

@DisplayName("GR-1 a client streaming call")
class ClientStreamingTest {
  private static final Duration LONG = Duration.ofSeconds(20);

  private final FakeCalls fake = new FakeCalls();
  private final Probe<byte[]> probe = new Probe<>();

  private static Mono<byte[]> upload(Channel channel, Publisher<byte[]> source) {
    return GrpcCalls.clientStreaming(channel, COLLECT, CallOptions.DEFAULT, source);
  }

  private static byte[] number(long n) {
    return ByteBuffer.allocate(8).putLong(n).array();
  }

  private static List<Long> numbers(List<byte[]> messages) {
    return messages.stream().map(message -> ByteBuffer.wrap(message).getLong()).toList();
  }

  private static List<Long> upTo(long end) {
    return java.util.stream.LongStream.range(0, end).boxed().toList();
  }

  private static Script answerAtTheEnd() {
    return reply -> reply.message(reply.request).ok();
  }

  /** Does this with the given message of an upload, and asks for no more after it. */
  private static Script at(int message, java.util.function.Consumer<Reply> then) {
    AtomicInteger seen = new AtomicInteger();
    return new Script() {
      @Override
      public void run(Reply reply) {}

      @Override
      public boolean received(Reply reply, byte[] bytes) {
        if (seen.incrementAndGet() == message) {
          then.accept(reply);
          return false;
        }
        return true;
      }
    };
  }

  private FakeCall subscribed(Publisher<byte[]> source) {
    upload(fake, source).subscribe(probe);
    probe.request(1);
    return fake.only();
  }

  @Nested
  @DisplayName("GR-1 what is sent")
  class Sending {
    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName(
        "GR-1 all that the source gives, in order, then the half close; the answer is a Mono")
    void inOrder(Transport transport) {
      try (var server = new BridgeServer(transport, answerAtTheEnd())) {
        Flux<byte[]> source = Flux.range(0, 5000).map(ClientStreamingTest::number);
        assertThat(upload(server.channel, source).block(LONG)).isEqualTo(number(4999));
        assertThat(numbers(server.received)).isEqualTo(upTo(5000));
        server.assertNothingOpen();
      }
    }

    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 from whatever thread the source emits on, also from changing ones")
    void fromOtherThreads(Transport transport) {
      try (var server = new BridgeServer(transport, answerAtTheEnd())) {
        Flux<byte[]> source =
            Flux.range(0, 2000)
                .concatMap(
                    n -> Mono.fromSupplier(() -> number(n)).subscribeOn(Schedulers.parallel()));
        upload(server.channel, source).block(LONG);
        assertThat(numbers(server.received)).isEqualTo(upTo(2000));
      }
    }

    @Test
    @DisplayName("GR-1 an empty source is a half close alone")
    void emptySource() {
      FakeCall call = subscribed(Flux.empty());
      assertThat(call.log).containsExactly("start", "halfClose");
      call.deliver(REQUEST);
      call.close(Status.OK);
      assertThat(probe.got).containsExactly(REQUEST);
      assertThat(probe.completed).isTrue();
    }

    @Test
    @DisplayName("GR-1 before subscription the source is not subscribed to and no call is made")
    void cold() {
      TestPublisher<byte[]> source = TestPublisher.create();
      Mono<byte[]> upload = upload(fake, source);
      assertThat(source.wasSubscribed()).isFalse();
      assertThat(fake.calls).isEmpty();
      upload.subscribe(probe);
      assertThat(source.wasSubscribed()).isTrue();
      assertThat(fake.calls).hasSize(1);
    }

    @Test
    @DisplayName("GR-1 a second subscription is a new call that sends all again")
    void retried() {
      AtomicInteger calls = new AtomicInteger();
      Script thirdWorks =
          reply -> {
            if (calls.incrementAndGet() == 3) {
              reply.message(REQUEST).ok();
            } else {
              reply.close(Status.UNAVAILABLE, new Metadata());
            }
          };
      try (var server = new BridgeServer(Transport.NETTY, thirdWorks)) {
        Flux<byte[]> source = Flux.range(0, 10).map(ClientStreamingTest::number);
        assertThat(upload(server.channel, source).retry(2).block(LONG)).isEqualTo(REQUEST);
        assertThat(server.received).hasSize(30);
        server.assertNothingOpen();
      }
    }

    @Test
    @DisplayName(
        "GR-1 a method of another type, no source, a setting out of range: refused at once")
    void refused() {
      assertThatThrownBy(
              () -> GrpcCalls.clientStreaming(fake, UNARY, CallOptions.DEFAULT, Flux.empty()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("CLIENT_STREAMING");
      assertThatThrownBy(
              () ->
                  GrpcCalls.clientStreaming(
                      fake,
                      COLLECT,
                      CallOptions.DEFAULT.withOption(GrpcCalls.REQUEST_AHEAD_BYTES, 0),
                      Flux.empty()))
          .hasMessage("requestAheadBytes: 0 (expected: >= 1)");
    }
  }

  @Nested
  @DisplayName("GR-1 demand")
  class Demand {
    private final AtomicLong requested = new AtomicLong();

    private Flux<byte[]> counted(Flux<byte[]> source) {
      return source.doOnRequest(requested::addAndGet);
    }

    @Test
    @DisplayName("GR-1 nothing is asked of the source before the call is ready")
    void notBeforeReady() {
      fake.isReadyAtFirst = false;
      FakeCall call = subscribed(counted(Flux.<byte[]>never()));
      assertThat(requested).hasValue(0);
      call.ready(10);
      assertThat(requested).hasValue(2);
    }

    @Test
    @DisplayName("GR-1 what comes while the call is not ready is held, and sent when it is again")
    void held() {
      TestPublisher<byte[]> source = TestPublisher.create();
      FakeCall call = subscribed(source);
      call.takes.set(1);
      source.next(number(0), number(1));
      source.complete();
      assertThat(numbers(call.sent)).containsExactly(0L);
      assertThat(call.log).doesNotContain("halfClose");
      call.ready(1);
      assertThat(numbers(call.sent)).containsExactly(0L, 1L);
      assertThat(call.log).endsWith("halfClose");
    }

    @Test
    @DisplayName("GR-1 batches grow while the messages are small, to 32 at most")
    void batches() {
      List<Long> batches = new ArrayList<>();
      FakeCall call =
          subscribed(
              Flux.range(0, 1000).map(ClientStreamingTest::number).doOnRequest(batches::add));
      assertThat(call.sent).hasSize(1000);
      assertThat(batches).startsWith(2L, 4L, 8L).allMatch(n -> n <= 32);
      assertThat(batches.size()).isLessThan(100);
    }

    @Test
    @DisplayName("GR-1 large messages are asked for one at a time")
    void largeMessages() {
      fake.isReadyAtFirst = false;
      List<Long> batches = new ArrayList<>();
      FakeCall call =
          subscribed(
              Flux.<byte[]>generate(sink -> sink.next(new byte[1 << 20]))
                  .doOnRequest(batches::add));
      call.ready(6);
      assertThat(call.sent).hasSize(6);
      assertThat(batches)
          .as("the first 2 have sizes that nobody knows")
          .containsExactly(2L, 1L, 1L, 1L, 1L);
    }

    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 a server that takes nothing more holds the source, within a bound in bytes")
    void slowServer(Transport transport) {
      AtomicReference<Reply> held = new AtomicReference<>();
      try (var server = new BridgeServer(transport, at(3, held::set))) {
        AtomicInteger produced = new AtomicInteger();
        Flux<byte[]> source =
            Flux.generate(
                sink -> {
                  produced.incrementAndGet();
                  sink.next(new byte[64 * 1024]);
                });
        var running = upload(server.channel, source).subscribe();
        await("the third message", () -> held.get() != null);
        AtomicInteger before = new AtomicInteger(-1);
        await("the source rests", () -> rests(before, produced));
        // the server's windows and the transport's own buffer, and 256 KiB here
        assertThat(produced.get()).isLessThan(40);
        running.dispose();
        server.assertNothingOpen();
      }
    }

    private boolean rests(AtomicInteger before, AtomicInteger now) {
      int seen = now.get();
      boolean same = before.getAndSet(seen) == seen;
      if (!same || seen == 0) {
        java.util.concurrent.locks.LockSupport.parkNanos(200_000_000);
        return false;
      }
      return true;
    }

    @Test
    @DisplayName("GR-1 a source that gives more than was asked for is an error")
    void overflow() {
      fake.isReadyAtFirst = false;
      TestPublisher<byte[]> source =
          TestPublisher.createNoncompliant(TestPublisher.Violation.REQUEST_OVERFLOW);
      FakeCall call = subscribed(source);
      for (int i = 0; i < 40; i++) {
        source.next(number(i));
      }
      assertThat(probe.error).hasMessageContaining("more messages than were asked for");
      assertThat(call.cancels).hasValue(1);
      source.assertCancelled();
    }
  }

  @Nested
  @DisplayName("GR-1 an early end")
  class EarlyEnds {
    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 a status in mid-upload is what the subscriber gets; the source is cancelled")
    void earlyStatus(Transport transport) {
      for (int round = 0; round < 100; round++) {
        Script full =
            at(3, r -> r.close(Status.RESOURCE_EXHAUSTED.withDescription("full"), new Metadata()));
        try (var server = new BridgeServer(transport, full)) {
          AtomicInteger cancelled = new AtomicInteger();
          Flux<byte[]> endless =
              Flux.<byte[]>generate(sink -> sink.next(new byte[20_000]))
                  .doOnCancel(cancelled::incrementAndGet);
          assertThatThrownBy(() -> upload(server.channel, endless).block(LONG))
              .isInstanceOf(StatusRuntimeException.class)
              .hasMessage("RESOURCE_EXHAUSTED: full");
          await("cancel", () -> cancelled.get() == 1);
          server.assertNothingOpen();
        }
      }
    }

    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 an answer in mid-upload is a success; the source is cancelled")
    void earlyAnswer(Transport transport) {
      for (int round = 0; round < 100; round++) {
        try (var server =
            new BridgeServer(transport, at(2, reply -> reply.message(REQUEST).ok()))) {
          AtomicInteger cancelled = new AtomicInteger();
          Flux<byte[]> endless =
              Flux.<byte[]>generate(sink -> sink.next(new byte[20_000]))
                  .doOnCancel(cancelled::incrementAndGet);
          assertThat(upload(server.channel, endless).block(LONG)).isEqualTo(REQUEST);
          await("cancel", () -> cancelled.get() == 1);
          server.assertNothingOpen();
        }
      }
    }

    @Test
    @DisplayName("GR-1 a status while the source says nothing is told at once")
    void silentSource() {
      TestPublisher<byte[]> source = TestPublisher.create();
      FakeCall call = subscribed(source);
      call.close(Status.PERMISSION_DENIED);
      assertThat(probe.error).hasMessage("PERMISSION_DENIED");
      source.assertCancelled();
      assertThat(call.cancels).hasValue(0);
    }

    @Test
    @DisplayName("GR-1 an answer before the end stops the source, and tells that no more comes")
    void answerThenStatus() {
      TestPublisher<byte[]> source = TestPublisher.create();
      FakeCall call = subscribed(source);
      source.next(number(0));
      call.deliver(REQUEST);
      source.assertCancelled();
      assertThat(call.log).endsWith("halfClose");
      assertThat(probe.isDone()).as("the status is still to come").isFalse();
      call.close(Status.OK);
      assertThat(probe.got).containsExactly(REQUEST);
    }

    @Test
    @DisplayName("GR-1 a message that cannot be sent never hides what the server said")
    void sendFails() {
      fake.onSend = new IllegalStateException("the stream is closed");
      TestPublisher<byte[]> source = TestPublisher.create();
      FakeCall call = subscribed(source);
      source.next(number(0));
      source.assertCancelled();
      assertThat(call.cancels).as("so that the close comes in any case").hasValue(1);
      assertThat(probe.isDone()).isFalse();
      call.close(Status.RESOURCE_EXHAUSTED);
      assertThat(probe.error).hasMessage("RESOURCE_EXHAUSTED");
    }

    @Test
    @DisplayName("GR-1 what was held when the call ended goes to the discard hook, once")
    void discards() {
      List<byte[]> discarded = new CopyOnWriteArrayList<>();
      TestPublisher<byte[]> source = TestPublisher.create();
      upload(fake, source).doOnDiscard(byte[].class, discarded::add).subscribe(probe);
      FakeCall call = fake.only();
      call.takes.set(1);
      source.next(number(0), number(1));
      call.close(Status.UNAVAILABLE);
      assertThat(numbers(discarded)).containsExactly(1L);
    }

    @Test
    @DisplayName("GR-1 a source that has ended is not cancelled by the end of the call")
    void endedSource() {
      AtomicInteger cancelled = new AtomicInteger();
      FakeCall call =
          subscribed(Flux.just(number(0)).hide().doOnCancel(cancelled::incrementAndGet));
      call.deliver(REQUEST);
      call.close(Status.OK);
      assertThat(probe.completed).isTrue();
      assertThat(cancelled).hasValue(0);
    }
  }

  @Nested
  @DisplayName("GR-1 cancel")
  class Cancel {
    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 ends the call at the server and the source")
    void both(Transport transport) {
      try (var server = new BridgeServer(transport, Script.silent())) {
        AtomicInteger cancelled = new AtomicInteger();
        Flux<byte[]> source =
            Flux.concat(Flux.just(REQUEST), Flux.<byte[]>never())
                .doOnCancel(cancelled::incrementAndGet);
        var running = upload(server.channel, source).subscribe();
        await("the first message", () -> server.received.size() == 1);
        running.dispose();
        assertThat(cancelled).hasValue(1);
        server.assertNothingOpen();
        assertThat(server.cancelled).hasValue(1);
      }
    }

    @Test
    @DisplayName("GR-1 in onSubscribe: no call is made and the source is not subscribed to")
    void inOnSubscribe() {
      TestPublisher<byte[]> source = TestPublisher.create();
      probe.onSubscribed = Probe::cancel;
      upload(fake, source).subscribe(probe);
      assertThat(fake.calls).isEmpty();
      assertThat(source.wasSubscribed()).isFalse();
    }

    @Test
    @DisplayName("GR-1 in the midst of a send: nothing is sent after it")
    void whileSending() {
      fake.whileSending = probe::cancel;
      FakeCall call = subscribed(Flux.range(0, 100).map(ClientStreamingTest::number));
      assertThat(call.sent).hasSize(1);
      assertThat(call.cancels).hasValue(1);
      assertThat(call.log).doesNotContain("halfClose");
    }

    @Test
    @DisplayName("GR-1 a subscriber that throws leaves neither call nor source")
    void subscriberThatThrows() {
      TestPublisher<byte[]> source = TestPublisher.create();
      probe.onEach =
          p -> {
            throw new IllegalStateException("broken subscriber");
          };
      FakeCall call = subscribed(source);
      call.deliver(REQUEST);
      assertThatThrownBy(() -> call.close(Status.OK)).hasMessage("broken subscriber");
      assertThat(call.cancels).hasValue(1);
      source.assertCancelled();
    }
  }

  @Nested
  @DisplayName("GR-1 an error of the source")
  class SourceErrors {
    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 cancels the call, and is told as it is")
    void told(Transport transport) {
      try (var server = new BridgeServer(transport, answerAtTheEnd())) {
        Flux<byte[]> source =
            Flux.concat(Flux.just(REQUEST), Flux.error(new IllegalStateException("disk")));
        assertThatThrownBy(() -> upload(server.channel, source).block(LONG)).hasMessage("disk");
        server.assertNothingOpen();
        assertThat(server.sent).hasValue(0);
      }
    }

    @Test
    @DisplayName("GR-1 does not wait until the call is ready, and what is held is not sent")
    void notReady() {
      TestPublisher<byte[]> source = TestPublisher.create();
      FakeCall call = subscribed(source);
      call.takes.set(1);
      source.next(number(0), number(1));
      source.error(new IllegalStateException("disk"));
      assertThat(probe.error).hasMessage("disk");
      assertThat(call.sent).hasSize(1);
      assertThat(call.cancels).hasValue(1);
    }

    @Test
    @DisplayName("GR-1 that comes after the call's end is dropped, not told")
    void afterTheEnd() {
      List<Throwable> dropped = new CopyOnWriteArrayList<>();
      Hooks.onErrorDropped(dropped::add);
      try {
        TestPublisher<byte[]> source =
            TestPublisher.createNoncompliant(TestPublisher.Violation.CLEANUP_ON_TERMINATE);
        FakeCall call = subscribed(source);
        call.close(Status.RESOURCE_EXHAUSTED);
        source.error(new IllegalStateException("disk"));
        assertThat(probe.error).hasMessage("RESOURCE_EXHAUSTED");
        assertThat(probe.broken).isEmpty();
        assertThat(dropped).singleElement().satisfies(e -> assertThat(e).hasMessage("disk"));
      } finally {
        Hooks.resetOnErrorDropped();
      }
    }
  }

  @Nested
  @DisplayName("GR-1 Deadline and Context")
  class DeadlineAndContext {
    @Test
    @DisplayName("GR-1 the Context's deadline travels on the call and bounds it; the source ends")
    void bounds() {
      try (var server = new BridgeServer(Transport.NETTY, Script.silent()).connected()) {
        AtomicInteger cancelled = new AtomicInteger();
        Flux<byte[]> source =
            Flux.concat(Flux.just(REQUEST), Flux.<byte[]>never())
                .doOnCancel(cancelled::incrementAndGet);
        assertThatThrownBy(
                () ->
                    upload(server.channel, source)
                        .transform(Deadlines.within(Duration.ofSeconds(1)))
                        .block(LONG))
            .isInstanceOf(DeadlineExceededException.class);
        await("cancel", () -> cancelled.get() == 1);
        await("the call at the server", () -> server.started.get() == 1);
        server.assertNothingOpen();
        assertThat(server.deadlines).hasSize(1);
      }
    }

    @Test
    @DisplayName("GR-1 one that has passed: no call, and the source is not subscribed to")
    void passed() {
      TestPublisher<byte[]> source = TestPublisher.create();
      Mono<byte[]> late = upload(fake, source).transform(Deadlines.within(Duration.ZERO));
      assertThatThrownBy(() -> late.block(LONG)).isInstanceOf(DeadlineExceededException.class);
      assertThat(fake.calls).isEmpty();
      assertThat(source.wasSubscribed()).isFalse();
    }

    @Test
    @DisplayName("GR-1 the source sees the subscriber's Context, the call's options have it")
    void context() {
      probe.context = Context.of("who", "me");
      FakeCall call =
          subscribed(Flux.deferContextual(ctx -> Flux.just(ctx.<String>get("who").getBytes())));
      assertThat(call.sent).singleElement().isEqualTo("me".getBytes());
      assertThat(call.options.getOption(GrpcCalls.CONTEXT).<String>get("who")).isEqualTo("me");
    }
  }

  @Nested
  @DisplayName("BT-11 when it waits")
  class Waits {
    private final CallAttempt attempt = CallAttempt.create();
    private final RecordingClaim<?> claim = RecordingClaim.on(attempt);
    private final TestPublisher<byte[]> source = TestPublisher.create();

    private FakeCall start() {
      GrpcCalls.clientStreaming(
              fake, COLLECT, CallOptions.DEFAULT.withOption(CallAttempt.KEY, attempt), source)
          .subscribe(probe);
      probe.request(1);
      return fake.only();
    }

    @Test
    @DisplayName("BT-11 not for its own source")
    void slowSource() {
      start();
      assertThat(claim.waits).isFalse();
      assertThat(attempt.isServersTurn()).isFalse();
      source.next(number(0));
      assertThat(claim.waits).isFalse();
      assertThat(attempt.messagesSent()).isEqualTo(1);
    }

    @Test
    @DisplayName("BT-11 while the call takes nothing more")
    void notTaking() {
      FakeCall call = start();
      call.takes.set(1);
      source.next(number(0), number(1));
      assertThat(claim.waits).isTrue();
      assertThat(attempt.isServersTurn()).isTrue();
      assertThat(attempt.messagesSent()).isEqualTo(1);
      call.ready(5);
      assertThat(claim.waits).isFalse();
      assertThat(attempt.isServersTurn()).isFalse();
      assertThat(attempt.messagesSent()).isEqualTo(2);
    }

    @Test
    @DisplayName("BT-11 once all is sent, until the end")
    void allSent() {
      FakeCall call = start();
      source.next(number(0));
      source.complete();
      assertThat(claim.waits).isTrue();
      assertThat(attempt.isServersTurn()).isTrue();
      call.deliver(REQUEST);
      call.close(Status.OK);
      assertThat(claim.waits).isFalse();
      assertThat(claim.log).containsExactly("waiting", "idle");
    }
  }

  @Test
  @DisplayName("GR-1 many uploads at once, on threads that must not block")
  void manyAtOnce() {
    try (var server = new BridgeServer(Transport.NETTY, answerAtTheEnd())) {
      Flux<byte[]> source = Flux.range(0, 200).map(n -> new byte[1000]);
      List<byte[]> answers =
          Flux.fromStream(IntStream.range(0, 50).boxed())
              .flatMap(n -> upload(server.channel, source.publishOn(Schedulers.parallel())), 50)
              .collectList()
              .block(LONG);
      assertThat(answers).hasSize(50);
      assertThat(server.received).hasSize(10_000);
      server.assertNothingOpen();
    }
  }
}
