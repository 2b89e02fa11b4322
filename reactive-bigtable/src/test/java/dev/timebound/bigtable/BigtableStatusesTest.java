package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import com.google.protobuf.Any;
import com.google.protobuf.Message;
import com.google.rpc.DebugInfo;
import com.google.rpc.RetryInfo;
import dev.timebound.bigtable.BigtableStatuses.Line;
import dev.timebound.bigtable.BigtableStatuses.Verdict;
import dev.timebound.bigtable.CallEnd.EndedBy;
import dev.timebound.bigtable.CallEnd.Reach;
import dev.timebound.grpc.EndedCall;
import dev.timebound.health.FailureKind;
import dev.timebound.health.QuarantinedException;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.Status.Code;
import io.grpc.internal.GrpcUtil;
import io.grpc.internal.GrpcUtil.Http2Error;
import java.io.IOException;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@DisplayName("HE-2a BT-4 BT-34 the table of statuses")
class BigtableStatusesTest {
  private static final FailureKind CONNECTION = FailureKind.CONNECTION;
  private static final FailureKind OVERLOAD = FailureKind.OVERLOAD;
  private static final FailureKind ANSWER = FailureKind.ANSWER;
  private static final @Nullable FailureKind NOTHING = null;

  /** One line's case: an end, and what it must say. */
  record Case(CallEnd end, Line line, @Nullable FailureKind kind, boolean retried) {
    @Override
    public String toString() {
      String text = end.status().getDescription();
      return line
          + ": "
          + end.status().getCode()
          + (text == null ? "" : " \"" + text.replace('\n', ' ') + '"')
          + (end.endedBy() == EndedBy.PEER ? "" : " by " + end.endedBy())
          + (end.reach() == Reach.SENT ? "" : " " + end.reach());
    }
  }

  private static CallEnd byPeer(Status status, @Nullable Metadata trailers) {
    return new CallEnd(status, trailers, EndedBy.PEER, Reach.SENT);
  }

  private static CallEnd answered(Code code, String text) {
    return new CallEnd(
        code.toStatus().withDescription(text), new Metadata(), EndedBy.PEER, Reach.ANSWERED);
  }

  private static CallEnd peer(Code code, String text) {
    return byPeer(code.toStatus().withDescription(text), new Metadata());
  }

  private static CallEnd peer(Code code) {
    return byPeer(code.toStatus(), null);
  }

  private static CallEnd own(Code code, EndedBy by) {
    return new CallEnd(code.toStatus(), null, by, Reach.SENT);
  }

  private static CallEnd unsent(Code code, String text) {
    return new CallEnd(code.toStatus().withDescription(text), null, EndedBy.PEER, Reach.UNSENT);
  }

  /** As grpc-java's transport puts it, in the version under test. */
  private static CallEnd h2(@Nullable Code code, String context, Http2Error error) {
    Status made = Http2Error.statusForCode(error.code());
    return peer(code == null ? made.getCode() : code, context + ". " + made.getDescription());
  }

  private static CallEnd rst(Http2Error error) {
    return h2(null, "RST_STREAM closed stream", error);
  }

  private static CallEnd http(int code) {
    return byPeer(
        GrpcUtil.httpStatusToGrpcStatus(code).augmentDescription("invalid content-type: text/html"),
        new Metadata());
  }

  static Stream<Case> table() {
    return Stream.of(
        // the caller's own doing says nothing of the channel
        new Case(own(Code.CANCELLED, EndedBy.CALLER_CANCEL), Line.CALLER_CANCEL, NOTHING, false),
        new Case(
            own(Code.DEADLINE_EXCEEDED, EndedBy.CALLER_DEADLINE),
            Line.CALLER_DEADLINE,
            NOTHING,
            false),
        new Case(
            own(Code.UNAVAILABLE, EndedBy.CALLER_DEADLINE), Line.CALLER_DEADLINE, NOTHING, false),
        // our own limits
        new Case(own(Code.CANCELLED, EndedBy.GAP_TIMEOUT), Line.GAP_TIMEOUT, CONNECTION, true),
        new Case(
            own(Code.DEADLINE_EXCEEDED, EndedBy.HEADERS_TIMEOUT),
            Line.HEADERS_TIMEOUT,
            CONNECTION,
            true),
        new Case(quarantined(0), Line.QUARANTINE, NOTHING, true),
        new Case(quarantined(2), Line.QUARANTINE, NOTHING, true),
        // credentials
        new Case(
            unsent(Code.UNAVAILABLE, "Credentials failed to obtain metadata"),
            Line.NO_TOKEN_NOW,
            NOTHING,
            true),
        new Case(
            unsent(Code.UNAUTHENTICATED, "Failed computing credential metadata"),
            Line.NO_TOKEN,
            NOTHING,
            false),
        // HTTP/2
        new Case(
            peer(Code.RESOURCE_EXHAUSTED, "gRPC message exceeds maximum size 4194304: 5000000"),
            Line.MESSAGE_TOO_BIG,
            ANSWER,
            false),
        new Case(
            h2(null, "Abrupt GOAWAY closed sent stream", Http2Error.NO_ERROR),
            Line.GOAWAY,
            CONNECTION,
            true),
        new Case(
            h2(null, "Abrupt GOAWAY closed sent stream", Http2Error.INTERNAL_ERROR),
            Line.GOAWAY,
            CONNECTION,
            true),
        new Case(
            h2(null, "Abrupt GOAWAY closed sent stream", Http2Error.ENHANCE_YOUR_CALM),
            Line.GOAWAY,
            CONNECTION,
            true),
        new Case(
            h2(Code.UNAVAILABLE, "Abrupt GOAWAY closed unsent stream", Http2Error.PROTOCOL_ERROR),
            Line.GOAWAY,
            CONNECTION,
            true),
        new Case(
            h2(Code.UNAVAILABLE, "Connection closed after GOAWAY", Http2Error.NO_ERROR),
            Line.GOAWAY,
            CONNECTION,
            true),
        new Case(
            peer(Code.UNAVAILABLE, "HTTP/2 error code: NO_ERROR\nReceived Goaway"),
            Line.GOAWAY,
            CONNECTION,
            true),
        new Case(rst(Http2Error.INTERNAL_ERROR), Line.RESET, CONNECTION, true),
        new Case(rst(Http2Error.PROTOCOL_ERROR), Line.RESET, CONNECTION, true),
        new Case(rst(Http2Error.STREAM_CLOSED), Line.RESET, CONNECTION, true),
        new Case(rst(Http2Error.CANCEL), Line.RESET, CONNECTION, true),
        new Case(
            peer(Code.INTERNAL, "HTTP/2 error code: INTERNAL_ERROR\nReceived Rst Stream"),
            Line.RESET,
            CONNECTION,
            true),
        new Case(
            peer(Code.INTERNAL, "Received RST_STREAM with error code 2"),
            Line.RESET,
            CONNECTION,
            true),
        new Case(rst(Http2Error.REFUSED_STREAM), Line.UNAVAILABLE, CONNECTION, true),
        new Case(rst(Http2Error.ENHANCE_YOUR_CALM), Line.RESOURCE_EXHAUSTED, OVERLOAD, false),
        new Case(rst(Http2Error.INADEQUATE_SECURITY), Line.OTHER, ANSWER, false),
        new Case(rst(Http2Error.HTTP_1_1_REQUIRED), Line.OTHER, ANSWER, false),
        new Case(
            peer(Code.INTERNAL, "Received unexpected EOS on non-empty DATA frame from server"),
            Line.CUT_SHORT,
            CONNECTION,
            true),
        new Case(
            peer(Code.INTERNAL, "Received unexpected EOS on empty DATA frame from server"),
            Line.CUT_SHORT,
            CONNECTION,
            true),
        new Case(
            peer(Code.INTERNAL, "Encountered end-of-stream mid-frame"),
            Line.CUT_SHORT,
            CONNECTION,
            true),
        new Case(peer(Code.INTERNAL, "http2 exception"), Line.CONNECTION_BROKE, CONNECTION, true),
        new Case(peer(Code.UNKNOWN, "channel closed"), Line.CONNECTION_BROKE, CONNECTION, true),
        // the connection fails underneath
        new Case(peer(Code.UNAVAILABLE, "io exception"), Line.UNAVAILABLE, CONNECTION, true),
        new Case(
            peer(Code.UNAVAILABLE, "Network closed for unknown reason"),
            Line.UNAVAILABLE,
            CONNECTION,
            true),
        new Case(
            peer(Code.UNAVAILABLE, "Keepalive failed. The connection is likely gone"),
            Line.UNAVAILABLE,
            CONNECTION,
            true),
        new Case(
            unsent(Code.UNAVAILABLE, "Connection closed while stream is buffered"),
            Line.UNAVAILABLE,
            CONNECTION,
            true),
        new Case(unsent(Code.INTERNAL, "anything"), Line.UNSENT, CONNECTION, true),
        new Case(unsent(Code.UNKNOWN, "anything"), Line.UNSENT, CONNECTION, true),
        new Case(unsent(Code.CANCELLED, "anything"), Line.UNSENT, CONNECTION, true),
        // bare HTTP
        new Case(http(400), Line.INTERNAL, OVERLOAD, false),
        new Case(http(429), Line.HTTP_TOO_MANY_REQUESTS, OVERLOAD, true),
        new Case(http(502), Line.UNAVAILABLE, CONNECTION, true),
        new Case(http(503), Line.UNAVAILABLE, CONNECTION, true),
        new Case(http(504), Line.UNAVAILABLE, CONNECTION, true),
        new Case(http(401), Line.OTHER, ANSWER, false),
        new Case(http(403), Line.OTHER, ANSWER, false),
        new Case(http(404), Line.OTHER, ANSWER, false),
        new Case(http(500), Line.OTHER, ANSWER, false),
        // the server's own: the transport's words in its mouth do not make it the transport's
        new Case(
            answered(Code.INTERNAL, "Received RST_STREAM with error code 2"),
            Line.RESET_BEHIND_SERVER,
            OVERLOAD,
            true),
        new Case(answered(Code.CANCELLED, "rst stream"), Line.CANCELLED, CONNECTION, true),
        new Case(
            answered(Code.RESOURCE_EXHAUSTED, "goaway"), Line.RESOURCE_EXHAUSTED, OVERLOAD, false),
        new Case(answered(Code.INTERNAL, "http2 exception"), Line.INTERNAL, OVERLOAD, false),
        new Case(answered(Code.UNKNOWN, "channel closed"), Line.OTHER, ANSWER, false),
        new Case(
            answered(Code.UNAUTHENTICATED, "Failed computing credential metadata"),
            Line.OTHER,
            ANSWER,
            false),
        new Case(peer(Code.UNAVAILABLE), Line.UNAVAILABLE, CONNECTION, true),
        new Case(peer(Code.RESOURCE_EXHAUSTED), Line.RESOURCE_EXHAUSTED, OVERLOAD, false),
        new Case(peer(Code.INTERNAL), Line.INTERNAL, OVERLOAD, false),
        new Case(peer(Code.INTERNAL, "tablet exploded"), Line.INTERNAL, OVERLOAD, false),
        new Case(peer(Code.DEADLINE_EXCEEDED), Line.DEADLINE_EXCEEDED, CONNECTION, true),
        new Case(peer(Code.CANCELLED), Line.CANCELLED, CONNECTION, true),
        new Case(peer(Code.ABORTED), Line.ABORTED, ANSWER, true),
        new Case(peer(Code.NOT_FOUND), Line.OTHER, ANSWER, false),
        new Case(peer(Code.PERMISSION_DENIED), Line.OTHER, ANSWER, false),
        new Case(peer(Code.UNAUTHENTICATED), Line.OTHER, ANSWER, false),
        new Case(peer(Code.INVALID_ARGUMENT), Line.OTHER, ANSWER, false),
        new Case(peer(Code.FAILED_PRECONDITION), Line.OTHER, ANSWER, false),
        new Case(peer(Code.OUT_OF_RANGE), Line.OTHER, ANSWER, false),
        new Case(peer(Code.ALREADY_EXISTS), Line.OTHER, ANSWER, false),
        new Case(peer(Code.UNIMPLEMENTED), Line.OTHER, ANSWER, false),
        new Case(peer(Code.DATA_LOSS), Line.OTHER, ANSWER, false),
        new Case(peer(Code.UNKNOWN), Line.OTHER, ANSWER, false));
  }

  private static CallEnd quarantined(int wraps) {
    Throwable cause = new QuarantinedException("bigtable", "channel-3", "silent for 1 s");
    for (int i = 0; i < wraps; i++) {
      cause = new IOException("wrapped", cause);
    }
    return byPeer(Status.UNAVAILABLE.withCause(cause), null);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("table")
  void lines(Case c) {
    Verdict verdict = BigtableStatuses.of(c.end);

    assertThat(verdict.line()).isEqualTo(c.line);
    assertThat(verdict.kind()).isEqualTo(c.kind);
    assertThat(verdict.retryable()).isEqualTo(c.retried);
    assertThat(verdict.retryDelay()).isNull();
  }

  @Test
  @DisplayName("every line of the table has a case, and so has every code")
  void complete() {
    Map<Line, Boolean> lines = new EnumMap<>(Line.class);
    Map<Code, Boolean> codes = new EnumMap<>(Code.class);
    table()
        .forEach(
            c -> {
              lines.put(c.line, true);
              codes.put(c.end.status().getCode(), true);
            });
    assertThat(lines.keySet()).containsExactly(Line.values());
    assertThat(codes).hasSize(Code.values().length - 1);
  }

  @Test
  @DisplayName("HE-2a the pool's face of the table: the same lines, the caller's deadline aside")
  void pool() {
    Metadata none = new Metadata();
    Status reset = rst(Http2Error.INTERNAL_ERROR).status();
    Status late = Status.DEADLINE_EXCEEDED;

    assertThat(BigtableStatuses.kind(new EndedCall(reset, none, true, false, false)))
        .isEqualTo(CONNECTION);
    assertThat(BigtableStatuses.kind(new EndedCall(reset, none, true, true, false)))
        .isEqualTo(OVERLOAD);
    assertThat(BigtableStatuses.kind(new EndedCall(Status.UNKNOWN, none, false, false, false)))
        .isEqualTo(CONNECTION);
    assertThat(BigtableStatuses.kind(new EndedCall(late, none, true, true, false)))
        .isEqualTo(CONNECTION);
    assertThat(BigtableStatuses.kind(new EndedCall(late, none, true, true, true))).isNull();
    assertThat(BigtableStatuses.kind(new EndedCall(Status.UNAVAILABLE, none, true, true, true)))
        .isEqualTo(CONNECTION);
  }

  @Test
  @DisplayName("an error that is no status has no line")
  void noStatus() {
    assertThat(BigtableStatuses.of(new IllegalStateException(), EndedBy.PEER, true)).isNull();
    assertThat(BigtableStatuses.of(Status.ABORTED.asRuntimeException(), EndedBy.PEER, true))
        .isEqualTo(new Verdict(Line.ABORTED, ANSWER, true, null));
  }

  @Test
  @DisplayName("a success is no failure")
  void ok() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> BigtableStatuses.of(byPeer(Status.OK, null)));
  }

  @Nested
  @DisplayName("BT-34 a server's RetryInfo")
  class ServersDelay {
    private Metadata trailers(String key, byte[] value) {
      Metadata trailers = new Metadata();
      trailers.put(Metadata.Key.of(key, Metadata.BINARY_BYTE_MARSHALLER), value);
      return trailers;
    }

    private RetryInfo info(long seconds, int nanos) {
      return RetryInfo.newBuilder()
          .setRetryDelay(
              com.google.protobuf.Duration.newBuilder().setSeconds(seconds).setNanos(nanos))
          .build();
    }

    private Metadata details(Message... details) {
      com.google.rpc.Status.Builder status = com.google.rpc.Status.newBuilder().setCode(9);
      for (Message detail : details) {
        status.addDetails(Any.pack(detail));
      }
      return trailers("grpc-status-details-bin", status.build().toByteArray());
    }

    @Test
    @DisplayName("in the status's details makes any code retryable, and leaves its kind")
    void inDetails() {
      Verdict verdict =
          BigtableStatuses.of(
              byPeer(
                  Status.FAILED_PRECONDITION,
                  details(DebugInfo.getDefaultInstance(), info(1, 500_000_000))));

      assertThat(verdict).isEqualTo(new Verdict(Line.OTHER, ANSWER, true, Duration.ofMillis(1500)));
    }

    @Test
    @DisplayName("in a trailer of its own")
    void ownTrailer() {
      Verdict verdict =
          BigtableStatuses.of(
              byPeer(
                  Status.RESOURCE_EXHAUSTED,
                  trailers("google.rpc.retryinfo-bin", info(0, 7).toByteArray())));

      assertThat(verdict)
          .isEqualTo(new Verdict(Line.RESOURCE_EXHAUSTED, OVERLOAD, true, Duration.ofNanos(7)));
    }

    @Test
    @DisplayName("without a delay means at once; a negative one too")
    void noDelay() {
      assertThat(BigtableStatuses.retryDelay(details(RetryInfo.getDefaultInstance())))
          .isEqualTo(Duration.ZERO);
      assertThat(BigtableStatuses.retryDelay(details(info(-3, 0)))).isEqualTo(Duration.ZERO);
    }

    @Test
    @DisplayName("that cannot be read, or is beyond all measure, is ignored")
    void malformed() {
      byte[] junk = {(byte) 0xff, 1, 2};

      assertThat(BigtableStatuses.retryDelay(trailers("google.rpc.retryinfo-bin", junk))).isNull();
      assertThat(BigtableStatuses.retryDelay(trailers("grpc-status-details-bin", junk))).isNull();
      assertThat(BigtableStatuses.retryDelay(details(info(Long.MAX_VALUE, 0)))).isNull();
      assertThat(BigtableStatuses.retryDelay(details(DebugInfo.getDefaultInstance()))).isNull();
      assertThat(BigtableStatuses.retryDelay(new Metadata())).isNull();
    }

    @Test
    @DisplayName("never brings back what the caller has given up")
    void notForTheCaller() {
      for (EndedBy by : new EndedBy[] {EndedBy.CALLER_CANCEL, EndedBy.CALLER_DEADLINE}) {
        CallEnd end = new CallEnd(Status.UNAVAILABLE, details(info(1, 0)), by, Reach.SENT);

        assertThat(BigtableStatuses.of(end).retryable()).isFalse();
        assertThat(BigtableStatuses.of(end).retryDelay()).isNull();
      }
    }
  }
}
