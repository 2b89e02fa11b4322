package dev.timebound.test;

import static dev.timebound.test.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.bigtable.v2.PingAndWarmRequest;
import com.google.protobuf.ByteString;
import com.google.rpc.RetryInfo;
import dev.timebound.test.ScriptedCall.End;
import io.grpc.CallOptions;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import io.netty.handler.codec.http2.Http2Error;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(120)
class ScriptedBigtableTest {
  private static final Metadata.Key<String> COOKIE =
      Metadata.Key.of("x-goog-cbt-cookie-a", Metadata.ASCII_STRING_MARSHALLER);

  private ScriptedBigtable server;
  private Caller client;

  @BeforeEach
  void start() {
    server = ScriptedBigtable.start();
    client = new Caller(server.hostAndPort());
  }

  @AfterEach
  void nothingIsLeft() throws InterruptedException {
    client.close();
    server.close();
    server.close();
    assertThat(server.openStreams()).isZero();
    assertThat(server.openConnections()).isZero();
    eventually(
        "no thread is left",
        () ->
            Thread.getAllStackTraces().keySet().stream()
                .noneMatch(t -> t.getName().startsWith("timebound-scripted")));
  }

  @Nested
  class Answers {
    @Test
    @DisplayName("rows come in the messages that were scripted, then the status")
    void rows() {
      server
          .readRows()
          .next(Script.start().rows("a", "b").chunks(Rows.row("c", "v")).marker("x").ok());
      Caller.Call call = client.readRows(10);
      assertThat(call.awaitCode()).isEqualTo(Status.Code.OK);
      assertThat(call.messages).hasSize(3);
      assertThat(call.keys()).containsExactly("a", "b", "c");
      assertThat(call.messages.get(2).getLastScannedRowKey().toStringUtf8()).isEqualTo("x");
      server.awaitOpenStreams(0);
      assertThat(server.readRows().awaitCall(1).end()).isEqualTo(End.COMPLETE);
    }

    @Test
    @DisplayName(
        "a call takes what is queued, then what the function says, then the script for always")
    void precedence() {
      server
          .readRows()
          .next(Script.start().rows("queued").ok(), Script.start().rows("queued 2").ok())
          .answer(
              call ->
                  call.numberOfMethod() == 3
                      ? Script.start().rows("function " + call.connection()).ok()
                      : null)
          .always(Script.start().rows("always").ok());
      assertThat(IntStream.range(0, 5).mapToObj(i -> readOne()))
          .containsExactly("queued", "queued 2", "function 1", "always", "always");
    }

    private String readOne() {
      Caller.Call call = client.readRows(2);
      assertThat(call.awaitCode()).isEqualTo(Status.Code.OK);
      return call.keys().get(0);
    }

    @Test
    @DisplayName("a call without a script is told so; a function that throws, too")
    void noScript() {
      Status status = client.readRows(1).awaitStatus();
      assertThat(status.getCode()).isEqualTo(Status.Code.INTERNAL);
      assertThat(status.getDescription()).contains("no script for ReadRows #1");
      server
          .readRows()
          .answer(
              call -> {
                throw new IllegalStateException("wrong: 100 % ä");
              });
      assertThat(client.readRows(1).awaitStatus().getDescription())
          .contains("script failed")
          .contains("wrong: 100 % ä");
    }

    @Test
    @DisplayName("a script that sends headers twice is told so")
    void twiceHeaders() {
      server.readRows().always(Script.start().headers().headers().ok());
      assertThat(client.readRows(1).awaitStatus().getDescription()).contains("headers twice");
    }

    @Test
    @DisplayName("PingAndWarm answers OK of itself, and what it is told otherwise")
    void ping() {
      assertThat(client.ping()).isNotNull();
      server.pingAndWarm().next(Script.start().status(Status.PERMISSION_DENIED));
      assertThatThrownBy(() -> client.ping())
          .isInstanceOf(StatusRuntimeException.class)
          .hasMessageContaining("PERMISSION_DENIED");
      assertThat(client.ping()).isNotNull();
      assertThat(server.pingAndWarm().calls()).hasSize(3);
    }

    @Test
    @DisplayName(
        "a method that is not Bigtable's is UNIMPLEMENTED; a route for it is refused by name")
    void unknown() {
      MethodDescriptor<PingAndWarmRequest, PingAndWarmRequest> other =
          MethodDescriptor.<PingAndWarmRequest, PingAndWarmRequest>newBuilder()
              .setType(MethodDescriptor.MethodType.UNARY)
              .setFullMethodName("other/Method")
              .setRequestMarshaller(ProtoUtils.marshaller(PingAndWarmRequest.getDefaultInstance()))
              .setResponseMarshaller(ProtoUtils.marshaller(PingAndWarmRequest.getDefaultInstance()))
              .build();
      assertThatThrownBy(
              () ->
                  ClientCalls.blockingUnaryCall(
                      client.channel,
                      other,
                      CallOptions.DEFAULT,
                      PingAndWarmRequest.getDefaultInstance()))
          .hasMessageContaining("UNIMPLEMENTED");
      assertThatThrownBy(() -> server.route("Method"))
          .hasMessageStartingWith("method: Method (expected: one of");
    }

    @Test
    @DisplayName("a row of 5 MB, whole and in pieces")
    void largeRow() {
      ByteString value = ByteString.copyFrom(new byte[5 << 20]);
      server
          .readRows()
          .next(
              Script.start()
                  .chunks(Rows.row("whole", value))
                  .message(Rows.message(Rows.splitRow("split", value, 1 << 20)))
                  .ok());
      Caller.Call call = client.readRows(10);
      assertThat(call.awaitCode()).isEqualTo(Status.Code.OK);
      assertThat(call.messages.get(0).getChunks(0).getValue()).isEqualTo(value);
      assertThat(call.messages.get(1).getChunksList()).hasSize(5);
      assertThat(call.messages.get(1).getChunks(0).getValueSize()).isEqualTo(5 << 20);
      assertThat(call.messages.get(1).getChunks(4).getCommitRow()).isTrue();
      assertThat(server.readRows().awaitCall(1).bytesPushed()).isGreaterThan(10 << 20);
    }
  }

  @Nested
  class Silence {
    @Test
    @DisplayName("a call that nothing is said to has no headers and stays open")
    void full() {
      server.readRows().always(Script.start());
      Caller.Call call = client.readRows(1);
      server.readRows().awaitCall(1);
      client.ping();
      assertThat(call.headers).isFalse();
      assertThat(call.status).isNull();
      assertThat(server.openStreams()).isEqualTo(1);
      call.call.cancel("enough", null);
      server.readRows().awaitCall(1).awaitEnd(End.RESET_BY_CLIENT);
      assertThat(server.readRows().awaitCall(1).resetCode()).isEqualTo(Http2Error.CANCEL.code());
      assertThat(server.resetsReceived()).isEqualTo(1);
      server.awaitOpenStreams(0);
    }

    @Test
    @DisplayName("headers may come and then nothing")
    void afterHeaders() {
      server.readRows().always(Script.start().headers().silence().ok());
      Caller.Call call = client.readRows(1);
      call.awaitHeaders();
      client.ping();
      assertThat(call.status).isNull();
    }

    @Test
    @DisplayName("a gate holds headers and rows until the test opens it")
    void gate() {
      Gate headers = new Gate();
      Gate rows = new Gate();
      server.readRows().always(Script.start().hold(headers).headers().hold(rows).rows("a").ok());
      Caller.Call one = client.readRows(2);
      Caller.Call two = client.readRows(2);
      headers.awaitHeld(2);
      assertThat(one.headers).isFalse();
      headers.open();
      headers.open();
      one.awaitHeaders();
      two.awaitHeaders();
      rows.awaitHeld(2);
      assertThat(one.messages).isEmpty();
      rows.open();
      assertThat(one.awaitCode()).isEqualTo(Status.Code.OK);
      assertThat(two.awaitCode()).isEqualTo(Status.Code.OK);
      assertThat(two.keys()).isEqualTo(one.keys()).containsExactly("a");
      assertThat(client.readRows(2).awaitCode())
          .as("an open gate holds nobody")
          .isEqualTo(Status.Code.OK);
      assertThat(rows.isOpen()).isTrue();
      assertThat(rows.held()).isZero();
    }

    @Test
    @DisplayName("a pause comes before what follows it")
    void pause() {
      server.readRows().always(Script.start().pause(Duration.ofMillis(50)).rows("a").ok());
      long start = System.nanoTime();
      assertThat(client.readRows(2).awaitCode()).isEqualTo(Status.Code.OK);
      assertThat(Duration.ofNanos(System.nanoTime() - start))
          .isGreaterThanOrEqualTo(Duration.ofMillis(50));
    }
  }

  @Nested
  class Ends {
    @Test
    @DisplayName("a status before anything else is trailers-only, with metadata and description")
    void trailersOnly() {
      Metadata trailers = new Metadata();
      trailers.put(COOKIE, "oat");
      server
          .readRows()
          .always(Script.start().status(Status.NOT_FOUND.withDescription("no table ü"), trailers));
      Caller.Call call = client.readRows(1);
      Status status = call.awaitStatus();
      assertThat(status.getCode()).isEqualTo(Status.Code.NOT_FOUND);
      assertThat(status.getDescription()).isEqualTo("no table ü");
      assertThat(call.trailers.get(COOKIE)).isEqualTo("oat");
      assertThat(call.headers).isFalse();
    }

    @Test
    @DisplayName("RetryInfo travels in the status' details, beside other trailers")
    void retryInfo() throws Exception {
      Metadata trailers = new Metadata();
      trailers.put(COOKIE, "oat");
      server
          .readRows()
          .always(
              Script.start()
                  .rows("a")
                  .statusWithRetryInfo(
                      Status.UNAVAILABLE.withDescription("later"),
                      Duration.ofMillis(1_500),
                      trailers));
      Caller.Call call = client.readRows(2);
      assertThat(call.awaitCode()).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(call.headers).isTrue();
      assertThat(call.trailers.get(COOKIE)).isEqualTo("oat");
      byte[] details =
          call.trailers.get(
              Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER));
      com.google.rpc.Status rpc = com.google.rpc.Status.parseFrom(details);
      RetryInfo info = rpc.getDetails(0).unpack(RetryInfo.class);
      assertThat(rpc.getCode()).isEqualTo(Status.Code.UNAVAILABLE.value());
      assertThat(info.getRetryDelay().getSeconds()).isEqualTo(1);
      assertThat(info.getRetryDelay().getNanos()).isEqualTo(500_000_000);
    }

    @ParameterizedTest
    @CsvSource({
      "INTERNAL_ERROR, INTERNAL, false",
      "INTERNAL_ERROR, INTERNAL, true",
      "REFUSED_STREAM, UNAVAILABLE, false",
      "CANCEL, CANCELLED, true",
      "ENHANCE_YOUR_CALM, RESOURCE_EXHAUSTED, true"
    })
    @DisplayName("RST_STREAM of any code, before and after the headers")
    void reset(Http2Error error, Status.Code expected, boolean headersFirst) {
      Script script = headersFirst ? Script.start().headers().hold(opened()) : Script.start();
      server.readRows().always(script.reset(error));
      Caller.Call call = client.readRows(1);
      assertThat(call.awaitCode()).isEqualTo(expected);
      ScriptedCall seen = server.readRows().awaitCall(1);
      seen.awaitEnd(End.RESET_BY_SERVER);
      assertThat(seen.resetCode()).isEqualTo(error.code());
      client.ping();
      assertThat(server.connections()).hasSize(1);
    }

    private static Gate opened() {
      Gate gate = new Gate();
      gate.open();
      return gate;
    }

    @ParameterizedTest
    @CsvSource({
      "400, INTERNAL",
      "429, UNAVAILABLE",
      "502, UNAVAILABLE",
      "503, UNAVAILABLE",
      "504, UNAVAILABLE"
    })
    @DisplayName("a bare HTTP status, as a proxy sends it")
    void http(int httpStatus, Status.Code expected) {
      server.readRows().always(Script.start().httpStatus(httpStatus));
      Status status = client.readRows(1).awaitStatus();
      assertThat(status.getCode()).isEqualTo(expected);
      assertThat(status.getDescription())
          .contains("HTTP status code " + httpStatus)
          .contains("<html>");
    }

    @Test
    @DisplayName("a message that cannot be parsed")
    void broken() {
      server
          .readRows()
          .always(Script.start().rawMessage(new byte[] {(byte) 0xff, (byte) 0xff}).ok());
      assertThat(client.readRows(2).awaitCode()).isNotEqualTo(Status.Code.OK);
    }
  }

  @Nested
  class Connections {
    @Test
    @DisplayName("a GOAWAY that keeps the stream lets it end; the next call takes a new connection")
    void goAway() {
      Gate gate = new Gate();
      // a call that meets the GOAWAY on its way fails: the test makes one more
      server
          .readRows()
          .next(Script.start().rows("a").goAway().hold(gate).rows("b").ok())
          .always(Script.start().ok());
      Caller.Call call = client.readRows(5);
      call.awaitMessages(1);
      gate.awaitHeld(1);
      eventually(
          "a new call takes another connection",
          () -> client.readRows(1).awaitStatus() != null && server.connections().size() == 2);
      gate.open();
      assertThat(call.awaitCode()).isEqualTo(Status.Code.OK);
      assertThat(call.keys()).containsExactly("a", "b");
      server.awaitOpenConnections(1);
    }

    @ParameterizedTest
    @CsvSource({"false", "true"})
    @DisplayName("a GOAWAY that disowns the stream ends it, before its headers or after")
    void refused(boolean headersFirst) {
      Script script = headersFirst ? Script.start().rows("a") : Script.start();
      server.readRows().always(script.goAwayRefusing(Http2Error.NO_ERROR));
      Caller.Call call = client.readRows(1);
      assertThat(call.awaitCode()).isEqualTo(Status.Code.UNAVAILABLE);
      server.readRows().awaitCall(1).awaitEnd(End.REFUSED); // noted once the GOAWAY has left
      client.ping();
      assertThat(server.connections()).hasSize(2);
    }

    @ParameterizedTest
    @CsvSource({"false", "true"})
    @DisplayName("a connection closed or reset by the script ends all its calls")
    void closed(boolean reset) {
      server.readRows().next(Script.start().headers());
      Script end =
          reset
              ? Script.start().rows("a").resetConnection()
              : Script.start().rows("a").closeConnection();
      server.readRows().next(end);
      Caller.Call other = client.readRows(1);
      other.awaitHeaders();
      Caller.Call call = client.readRows(1);
      assertThat(call.awaitCode()).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(other.awaitCode()).isEqualTo(Status.Code.UNAVAILABLE);
      server.readRows().awaitCall(1).awaitEnd(End.CONNECTION_CLOSED);
      server.readRows().awaitCall(2).awaitEnd(End.CONNECTION_CLOSED);
      client.ping();
      assertThat(server.connections().get(0).isOpen()).isFalse();
      assertThat(server.openConnections()).isEqualTo(1);
    }

    @Test
    @DisplayName("a test may close a connection, or have it say GOAWAY, at any time")
    void onCommand() {
      server.readRows().always(Script.start().headers());
      Caller.Call call = client.readRows(1);
      call.awaitHeaders();
      ScriptedConnection first = server.connections().get(0);
      first.goAway(0, Http2Error.ENHANCE_YOUR_CALM);
      assertThat(call.awaitCode()).isNotEqualTo(Status.Code.OK);
      Caller.Call second = client.readRows(1);
      second.awaitHeaders();
      server.connections().get(1).reset();
      assertThat(second.awaitCode()).isEqualTo(Status.Code.UNAVAILABLE);
    }
  }

  @Nested
  class Log {
    @Test
    @DisplayName("a call is kept with its request, metadata, timeout, connection and times")
    void call() {
      server.readRows().always(Script.start().rows("a").ok());
      Metadata metadata = new Metadata();
      metadata.put(COOKIE, "oat");
      Metadata.Key<byte[]> binary = Metadata.Key.of("x-bin", Metadata.BINARY_BYTE_MARSHALLER);
      metadata.put(binary, new byte[] {1, 2, 3});
      client.ping();
      client
          .readRows(2, CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS), metadata)
          .awaitStatus();
      client.readRows(2).awaitStatus();
      ScriptedCall seen = server.readRows().awaitCall(1);
      seen.awaitEnd(End.COMPLETE);
      assertThat(seen.readRows().getTableName()).isEqualTo("projects/p/instances/i/tables/t");
      assertThat(seen.header("x-goog-cbt-cookie-a")).isEqualTo("oat");
      assertThat(seen.metadata().get(binary)).containsExactly(1, 2, 3);
      assertThat(seen.timeout()).isBetween(Duration.ofSeconds(10), Duration.ofSeconds(30));
      assertThat(server.readRows().awaitCall(2).timeout()).isNull();
      assertThat(seen.number()).isEqualTo(2);
      assertThat(seen.numberOfMethod()).isEqualTo(1);
      assertThat(seen.connection()).isEqualTo(1);
      assertThat(seen.endedAtNanos()).isGreaterThanOrEqualTo(seen.startedAtNanos());
      assertThat(server.calls())
          .extracting(ScriptedCall::method)
          .containsExactly("PingAndWarm", "ReadRows", "ReadRows");
    }

    @Test
    @DisplayName("what is waited for in vain is told with what there is instead")
    void vain() {
      assertThatThrownBy(
              () ->
                  Await.until("a thing", () -> false, () -> "there is none", Duration.ofMillis(20)))
          .isInstanceOf(AssertionError.class)
          .hasMessageContaining("a thing; but there is none");
    }

    @Test
    @DisplayName("timeouts of every unit are read")
    void timeouts() {
      assertThat(List.of("2H", "2M", "2S", "2m", "2u", "2n").stream().map(GrpcHeaders::timeout))
          .containsExactly(
              Duration.ofHours(2),
              Duration.ofMinutes(2),
              Duration.ofSeconds(2),
              Duration.ofMillis(2),
              Duration.ofNanos(2_000),
              Duration.ofNanos(2));
    }
  }
}
