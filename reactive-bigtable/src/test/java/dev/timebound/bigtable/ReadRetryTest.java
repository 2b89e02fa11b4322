package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static dev.timebound.bigtable.Scripted.HOUR;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.Rows;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import dev.timebound.test.ScriptedCall;
import io.grpc.Metadata;
import io.grpc.Status;
import io.netty.handler.codec.http2.Http2Error;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;

/** No gap timeout here: what ends an attempt is what the script does. */
@DisplayName("BT-34 what is retried, and what is not")
class ReadRetryTest {

  private static Scripted start() {
    return Scripted.start(settings -> settings.gapTimeout(HOUR));
  }

  private static Scripted poolOfOne(ScriptedBigtable server) {
    return Scripted.on(
        server, settings -> settings.gapTimeout(HOUR).pool(pool -> pool.fixedChannels(1)));
  }

  static Stream<Arguments> retried() {
    Script script = Script.start();
    Metadata resetTold = new Metadata();
    return Stream.of(
        Arguments.of("UNAVAILABLE, trailers only", script.status(Status.UNAVAILABLE)),
        Arguments.of("UNAVAILABLE after headers", script.headers().status(Status.UNAVAILABLE)),
        Arguments.of("GOAWAY before headers", script.goAwayRefusing(Http2Error.NO_ERROR)),
        Arguments.of("GOAWAY calm", script.goAwayRefusing(Http2Error.ENHANCE_YOUR_CALM)),
        Arguments.of("GOAWAY cuts", script.headers().goAwayRefusing(Http2Error.NO_ERROR)),
        Arguments.of(
            "GOAWAY cuts, internal", script.headers().goAwayRefusing(Http2Error.INTERNAL_ERROR)),
        Arguments.of("connection reset", script.resetConnection()),
        Arguments.of("connection reset after headers", script.headers().resetConnection()),
        Arguments.of("connection closed", script.closeConnection()),
        Arguments.of("RST INTERNAL_ERROR", script.reset(Http2Error.INTERNAL_ERROR)),
        Arguments.of("RST REFUSED_STREAM", script.reset(Http2Error.REFUSED_STREAM)),
        Arguments.of("RST CANCEL", script.reset(Http2Error.CANCEL)),
        Arguments.of("RST after headers", script.headers().reset(Http2Error.INTERNAL_ERROR)),
        Arguments.of("RST of a code nobody knows", script.headers().reset(4711)),
        Arguments.of("DEADLINE_EXCEEDED", script.status(Status.DEADLINE_EXCEEDED)),
        Arguments.of("ABORTED", script.status(Status.ABORTED)),
        Arguments.of("CANCELLED", script.status(Status.CANCELLED)),
        Arguments.of("HTTP 502", script.httpStatus(502)),
        Arguments.of("HTTP 503", script.httpStatus(503)),
        Arguments.of("HTTP 504", script.httpStatus(504)),
        Arguments.of("HTTP 429", script.httpStatus(429)),
        Arguments.of(
            "RetryInfo of 0 on a status that is not retried",
            script.statusWithRetryInfo(Status.RESOURCE_EXHAUSTED, Duration.ZERO, resetTold)));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource
  @DisplayName("BT-34 retried, on another channel")
  void retried(String name, Script failure) {
    try (Scripted reads = start()) {
      reads.server.readRows().next(failure).always(Script.start().rows("a").ok());
      assertThat(reads.read().awaitComplete()).containsExactly("a");
      assertThat(reads.calls()).hasSize(2);
      assertThat(reads.calls().get(1).connection()).isNotEqualTo(reads.calls().get(0).connection());
    }
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource(
      value = Status.Code.class,
      names = {"OK", "UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "CANCELLED"},
      mode = EnumSource.Mode.EXCLUDE)
  @DisplayName("BT-34 not retried: what another attempt cannot mend")
  void notRetried(Status.Code code) {
    try (Scripted reads = start()) {
      reads.server.readRows().always(Script.start().status(code.toStatus().withDescription("why")));
      Status status = Status.fromThrowable(reads.read().awaitError());
      assertThat(status.getCode()).isEqualTo(code);
      assertThat(status.getDescription()).isEqualTo("why");
      assertThat(reads.calls()).hasSize(1);
    }
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("retried")
  @DisplayName("BT-34 grpc-java's own retries are off: the server sees one request an attempt")
  void oneRequestAnAttempt(String name, Script failure) {
    // A pool of one: each attempt meets the same script, and what grpc-java would do by itself
    // (a refused stream, an unprocessed one) shows as a request too many.
    try (Scripted reads = poolOfOne(ScriptedBigtable.start())) {
      reads.server.readRows().next(failure).always(Script.start().rows("a").ok());
      assertThat(reads.read().awaitComplete()).containsExactly("a");
      assertThat(reads.calls()).hasSize(2);
      assertThat(reads.client.pool().inFlight()).isZero();
    }
  }

  @Test
  @DisplayName("BT-34 a refused stream: three attempts, three requests, then the error")
  void refusedStreams() {
    try (Scripted reads = start()) {
      reads.server.readRows().always(Script.start().reset(Http2Error.REFUSED_STREAM));
      assertThat(Status.fromThrowable(reads.read().awaitError()).getCode())
          .isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(reads.calls()).hasSize(3);
    }
  }

  @Test
  @DisplayName("BT-34 BT-1 queued behind the stream limit when its connection fails: sent again")
  void queuedUnsent() {
    try (Scripted reads = poolOfOne(ScriptedBigtable.builder().maxConcurrentStreams(1).start())) {
      reads.server.readRows().next(Script.start()).always(Script.start().rows("a").ok());
      Reader holds = reads.unread();
      Reader queued = reads.read();
      eventually(() -> assertThat(reads.client.pool().inFlight()).isEqualTo(2));
      assertThat(reads.calls()).hasSize(1);
      reads.server.connections().get(0).reset();
      assertThat(queued.awaitComplete()).containsExactly("a");
      assertThat(reads.calls()).hasSize(2);
      holds.cancel();
    }
  }

  @Test
  @DisplayName("BT-34 queued behind the stream limit when its connection says GOAWAY: sent again")
  void queuedAtGoAway() {
    try (Scripted reads = poolOfOne(ScriptedBigtable.builder().maxConcurrentStreams(1).start())) {
      reads.server.readRows().next(Script.start()).always(Script.start().rows("a").ok());
      Reader holds = reads.unread();
      Reader queued = reads.read();
      eventually(() -> assertThat(reads.client.pool().inFlight()).isEqualTo(2));
      reads.server.connections().get(0).goAway();
      assertThat(queued.awaitComplete()).containsExactly("a");
      holds.cancel();
    }
  }

  @Test
  @DisplayName("BT-34 the delay that the server asks for is kept to")
  void retryInfo() {
    Duration delay = Duration.ofMillis(400);
    try (Scripted reads = start()) {
      reads
          .server
          .readRows()
          .next(Script.start().statusWithRetryInfo(Status.UNAVAILABLE, delay))
          .always(Script.start().rows("a").ok());
      assertThat(reads.read().awaitComplete()).containsExactly("a");
      ScriptedCall first = reads.calls().get(0);
      ScriptedCall second = reads.calls().get(1);
      assertThat(Duration.ofNanos(second.startedAtNanos() - first.startedAtNanos()))
          .isGreaterThanOrEqualTo(delay);
    }
  }

  @Test
  @DisplayName(
      "BT-34 a pause of any length that a server asks for breaks nothing, and ends with a cancel")
  void endlessRetryInfo() {
    try (Scripted reads = start()) {
      reads
          .server
          .readRows()
          .always(
              Script.start()
                  .statusWithRetryInfo(Status.UNAVAILABLE, Duration.ofNanos(Long.MAX_VALUE)));
      Reader reader = reads.read();
      reads.server.readRows().awaitCall(1).awaitEnd(ScriptedCall.End.COMPLETE);
      Scripted.letPass(Scripted.GAP);
      assertThat(reader.isOver()).isFalse();
      assertThat(reads.calls()).hasSize(1);
      reader.cancel();
    }
  }

  @Test
  @DisplayName("BT-34 the pauses grow, jittered, within their bounds")
  void pauses() {
    Duration first = Duration.ofMillis(100);
    try (Scripted reads =
        Scripted.start(
            settings ->
                settings.gapTimeout(HOUR).maxAttempts(4).backoff(first, first.multipliedBy(2)))) {
      reads.server.readRows().always(Script.start().status(Status.UNAVAILABLE));
      reads.read().awaitError();
      assertThat(reads.calls()).hasSize(4);
      for (int i = 1; i < 4; i++) {
        // half of it at least, by the jitter
        assertThat(reads.calls().get(i).startedAtNanos() - reads.calls().get(i - 1).endedAtNanos())
            .isGreaterThan(first.toNanos() / 2 * (i == 1 ? 1 : 2) - Duration.ofMillis(5).toNanos());
      }
    }
  }

  @Test
  @DisplayName("BT-34 a message that is no message ends the read, with its channel")
  void garbage() {
    try (Scripted reads = start()) {
      reads
          .server
          .readRows()
          .always(Script.start().rows("a").rawMessage(new byte[] {(byte) 0xff, 1, 2}).silence());
      Reader reader = reads.read();
      Throwable e = reader.awaitError();
      assertThat(reader.keys()).containsExactly("a");
      assertThat(Status.fromThrowable(e).getCode()).isNotEqualTo(Status.Code.OK);
    }
  }

  @Test
  @DisplayName("a subscriber that throws gets no further signal, and leaves no call open")
  void subscriberThrows() {
    try (Scripted reads = start()) {
      reads
          .server
          .readRows()
          .always(Script.start().message(Rows.message("a", "b")).rows("c").silence());
      AtomicInteger signals = new AtomicInteger();
      // Reactor's own subscribers catch what they throw; this one does not.
      CoreSubscriber<Row> throwing =
          new CoreSubscriber<>() {
            @Override
            public void onSubscribe(Subscription s) {
              s.request(Long.MAX_VALUE);
            }

            @Override
            public void onNext(Row row) {
              signals.incrementAndGet();
              throw new IllegalStateException("the subscriber's own");
            }

            @Override
            public void onError(Throwable t) {
              signals.incrementAndGet();
            }

            @Override
            public void onComplete() {
              signals.incrementAndGet();
            }
          };
      try {
        reads.all().subscribe(throwing);
      } catch (IllegalStateException itsOwn) {
        // Rows that come in before subscribe() has returned are handed on by this very thread.
        assertThat(itsOwn).hasMessage("the subscriber's own");
      }
      reads.server.readRows().awaitCall(1).awaitEnd(ScriptedCall.End.RESET_BY_CLIENT);
      eventually(() -> assertThat(reads.client.isIdle()).isTrue());
      assertThat(signals).hasValue(1);
      reads.server.awaitOpenStreams(0);
    }
  }
}
