package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.STREAM;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.grpc.BridgeServer.Script;
import dev.timebound.grpc.BridgeServer.Transport;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

class GrpcCallsErrorsTest {
  private static final Duration LONG = Duration.ofSeconds(20);
  private static final Metadata.Key<String> HINT =
      Metadata.Key.of("hint", Metadata.ASCII_STRING_MARSHALLER);

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
  @DisplayName("GR-1 errors")
  class Errors {
    @ParameterizedTest
    @EnumSource(Transport.class)
    @DisplayName("GR-1 a status comes as StatusRuntimeException with the server's trailers")
    void statusWithTrailers(Transport transport) {
      Script refuses =
          reply -> {
            Metadata trailers = new Metadata();
            trailers.put(HINT, "later");
            reply.close(Status.UNAVAILABLE.withDescription("busy"), trailers);
          };
      try (var server = new BridgeServer(transport, refuses)) {
        for (Flux<byte[]> call : List.of(unary(server.channel).flux(), stream(server.channel))) {
          StepVerifier.create(call)
              .verifyErrorSatisfies(
                  e -> {
                    assertThat(e).isInstanceOf(StatusRuntimeException.class);
                    StatusRuntimeException error = (StatusRuntimeException) e;
                    assertThat(error.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
                    assertThat(error.getStatus().getDescription()).isEqualTo("busy");
                    assertThat(error.getTrailers()).isNotNull();
                    assertThat(Status.trailersFromThrowable(e))
                        .extracting(trailers -> trailers.get(HINT))
                        .isEqualTo("later");
                  });
        }
      }
    }

    @Test
    @DisplayName("GR-1 messages at hand come before the error, at downstream's pace")
    void messagesFirst() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      stream(fake).subscribe(probe);
      probe.request(1);
      fake.only().deliver(new byte[] {1});
      fake.only().deliver(new byte[] {2});
      fake.only().close(Status.UNAVAILABLE);
      assertThat(probe.got).hasSize(1);
      assertThat(probe.isDone()).isFalse();
      probe.request(1);
      assertThat(probe.got).hasSize(2);
      assertThat(probe.error).hasMessage("UNAVAILABLE");
      assertThat(probe.broken).isEmpty();
    }

    @Test
    @DisplayName("GR-1 a unary answer with an error status is an error, the value discarded")
    void answerThenError() {
      FakeCalls fake = new FakeCalls();
      List<byte[]> discarded = new CopyOnWriteArrayList<>();
      Probe<byte[]> probe = new Probe<>();
      unary(fake).doOnDiscard(byte[].class, discarded::add).subscribe(probe);
      probe.request(1);
      fake.only().deliver(REQUEST);
      assertThat(probe.got).as("not before the status").isEmpty();
      fake.only().close(Status.DATA_LOSS);
      assertThat(probe.error).hasMessage("DATA_LOSS");
      assertThat(probe.got).isEmpty();
      assertThat(discarded).containsExactly(REQUEST);
    }

    @Test
    @DisplayName("GR-1 a unary OK without an answer, or with two, is INTERNAL")
    void notExactlyOne() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> none = new Probe<>();
      unary(fake).subscribe(none);
      none.request(1);
      fake.calls.get(0).close(Status.OK);
      assertThat(none.error).hasMessage("INTERNAL: No value received (expected: one)");

      List<byte[]> discarded = new CopyOnWriteArrayList<>();
      Probe<byte[]> two = new Probe<>();
      unary(fake).doOnDiscard(byte[].class, discarded::add).subscribe(two);
      two.request(1);
      fake.calls.get(1).deliver(REQUEST);
      fake.calls.get(1).deliver(REQUEST);
      assertThat(two.error).hasMessage("INTERNAL: More than one value received (expected: one)");
      assertThat(fake.calls.get(1).cancels).hasValue(1);
      assertThat(discarded).hasSize(2);
      assertThat(two.got).isEmpty();
    }

    @Test
    @DisplayName("GR-1 a channel that throws in newCall: the error as it is")
    void newCallThrows() {
      FakeCalls fake = new FakeCalls();
      fake.onNewCall = new IllegalStateException("no call");
      StepVerifier.create(stream(fake)).verifyErrorMessage("no call");
      StepVerifier.create(unary(fake)).verifyErrorMessage("no call");
    }

    @Test
    @DisplayName("GR-1 a call that throws in start: the error as it is, and the call cancelled")
    void startThrows() {
      FakeCalls fake = new FakeCalls();
      fake.onStart = new IllegalStateException("no start");
      StepVerifier.create(stream(fake)).verifyErrorMessage("no start");
      assertThat(fake.only().cancels).hasValueGreaterThan(0);
      assertThat(fake.only().log).containsExactly("start");
    }

    @Test
    @DisplayName("GR-1 a call that throws while the request is sent is cancelled; its status tells")
    void sendThrows() {
      FakeCalls fake = new FakeCalls();
      fake.onSend = new IllegalStateException("call was cancelled");
      Probe<byte[]> probe = new Probe<>();
      stream(fake).subscribe(probe);
      assertThat(fake.only().cancels).hasValue(1);
      assertThat(probe.isDone()).isFalse();
      fake.only().close(Status.UNAVAILABLE.withDescription("quarantined"));
      assertThat(probe.error).hasMessage("UNAVAILABLE: quarantined");
    }

    @Test
    @DisplayName("BT-15 a call that a quarantine ended while its request was sent tells just that")
    void quarantinedWhileSending() {
      FakeCalls fake = new FakeCalls();
      fake.onSend = new IllegalStateException("call was cancelled");
      CallAttempt attempt = CallAttempt.create();
      RecordingClaim.on(attempt).ended = true;
      Probe<byte[]> probe = new Probe<>();
      CallOptions options = CallOptions.DEFAULT.withOption(CallAttempt.KEY, attempt);
      GrpcCalls.serverStreaming(fake, STREAM, options, REQUEST).subscribe(probe);
      assertThat(fake.only().cancels).as("a second cancel would hide the first").hasValue(0);
      fake.only().close(Status.UNAVAILABLE.withDescription("quarantined"));
      assertThat(probe.error).hasMessage("UNAVAILABLE: quarantined");
    }

    @Test
    @DisplayName("GR-1 a call that closes while it starts ends the subscription once")
    void closesInStart() {
      FakeCalls fake = new FakeCalls();
      fake.closeInStart = Status.UNAVAILABLE;
      Probe<byte[]> probe = new Probe<>();
      probe.onSubscribed = p -> p.request(3);
      stream(fake).subscribe(probe);
      assertThat(probe.error).hasMessage("UNAVAILABLE");
      assertThat(probe.broken).isEmpty();
    }

    @Test
    @DisplayName("GR-1 a method of another type, and a setting out of range, are refused at once")
    void refused() {
      FakeCalls fake = new FakeCalls();
      assertThatThrownBy(() -> GrpcCalls.unary(fake, STREAM, CallOptions.DEFAULT, REQUEST))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("method test/Stream: SERVER_STREAMING (expected: UNARY)");
      assertThatThrownBy(
              () ->
                  GrpcCalls.serverStreaming(
                      fake,
                      STREAM,
                      CallOptions.DEFAULT.withOption(GrpcCalls.REQUEST_AHEAD_BYTES, 0),
                      REQUEST))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("requestAheadBytes: 0 (expected: >= 1)");
    }

    @Test
    @DisplayName("GR-1 a request of 0 or less ends the stream with IllegalArgumentException")
    void badRequest() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      stream(fake).subscribe(probe);
      probe.request(0);
      assertThat(probe.error)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("3.9");
      assertThat(fake.only().cancels).hasValue(1);
      fake.only().close(Status.CANCELLED);
      assertThat(probe.broken).isEmpty();
    }

    @Test
    @DisplayName("GR-1 a channel that delivers more than was asked for is an error, not a leak")
    void overflow() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      stream(fake).subscribe(probe);
      for (int i = 0; i < 100 && !probe.isDone(); i++) {
        fake.only().deliver(REQUEST);
      }
      assertThat(probe.error).hasMessageContaining("more messages than were asked for");
      assertThat(fake.only().cancels).hasValue(1);
    }
  }
}
