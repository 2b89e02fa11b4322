package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.bigtable.v2.FeatureFlags;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedCall;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class AttemptHeadersTest {
  private static final String COOKIE = "x-goog-cbt-cookie-routing";
  private static final String OTHER = "x-goog-cbt-cookie-other";
  private static final Script UNAVAILABLE = Script.start().status(Status.UNAVAILABLE);
  private static final Script ROWS = Script.start().rows("a").ok();

  private static Metadata with(String... namesAndValues) {
    Metadata metadata = new Metadata();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      metadata.put(
          Metadata.Key.of(namesAndValues[i], Metadata.ASCII_STRING_MARSHALLER),
          namesAndValues[i + 1]);
    }
    return metadata;
  }

  private static Scripted start() {
    return Scripted.start(settings -> settings.gapTimeout(Scripted.HOUR));
  }

  private static List<String> sent(Scripted reads, String header) {
    return reads.calls().stream().map(call -> String.valueOf(call.header(header))).toList();
  }

  @Test
  @DisplayName("BT-39 every attempt says where it goes, its number and what the client understands")
  void everyAttempt() throws Exception {
    try (Scripted reads = start()) {
      reads.server.readRows().next(UNAVAILABLE).next(UNAVAILABLE).always(ROWS);
      assertThat(reads.read().awaitComplete()).containsExactly("a");
      assertThat(sent(reads, "bigtable-attempt")).containsExactly("0", "1", "2");
      for (ScriptedCall call : reads.calls()) {
        assertThat(call.header("x-goog-request-params"))
            .isEqualTo("table_name=projects%2Ftimebound%2Finstances%2Ftest%2Ftables%2Ftable");
        assertThat(call.header("google-cloud-resource-prefix"))
            .isEqualTo("projects/timebound/instances/test/tables/table");
        FeatureFlags flags =
            FeatureFlags.parseFrom(Base64.getUrlDecoder().decode(call.header("bigtable-features")));
        assertThat(flags.getReverseScans()).isTrue();
        assertThat(flags.getLastScannedRowResponses()).isTrue();
        assertThat(flags.getRoutingCookie()).isTrue();
        assertThat(flags.getRetryInfo()).isTrue();
      }
    }
  }

  @Test
  @DisplayName("BT-39 BT-38 so does a call whose answer comes as a whole")
  void otherCalls() {
    try (Scripted reads = start()) {
      reads
          .server
          .sampleRowKeys()
          .next(Script.start().status(Status.UNAVAILABLE, with(COOKIE, "one")))
          .always(Script.start().ok());
      assertThat(reads.client.sampleRowKeys("table").collectList().block(Scripted.BOUND)).isEmpty();
      List<ScriptedCall> calls = reads.server.sampleRowKeys().calls();
      assertThat(calls)
          .extracting(call -> call.header("bigtable-attempt"))
          .containsExactly("0", "1");
      assertThat(calls).extracting(call -> call.header(COOKIE)).containsExactly(null, "one");
    }
  }

  @Nested
  class Cookies {
    @Test
    @DisplayName("BT-38 a cookie goes with the attempts that follow, until another takes its place")
    void carried() {
      try (Scripted reads = Scripted.start(s -> s.gapTimeout(Scripted.HOUR).maxAttempts(6))) {
        reads
            .server
            .readRows()
            .next(Script.start().status(Status.UNAVAILABLE, with(COOKIE, "one")))
            .next(UNAVAILABLE)
            .next(Script.start().status(Status.UNAVAILABLE, with(OTHER, "more")))
            .next(Script.start().status(Status.UNAVAILABLE, with(COOKIE, "two")))
            .always(ROWS);
        reads.read().awaitComplete();
        assertThat(sent(reads, COOKIE)).containsExactly("null", "one", "one", "one", "two");
        assertThat(sent(reads, OTHER)).containsExactly("null", "null", "null", "more", "more");
        reads.read().awaitComplete();
        assertThat(sent(reads, COOKIE)).as("another read's").endsWith("null");
      }
    }

    @Test
    @DisplayName("BT-38 headers bring one too, and the trailers' wins")
    void headersAndTrailers() {
      try (Scripted reads = start()) {
        reads
            .server
            .readRows()
            .next(
                Script.start()
                    .headers(with(COOKIE, "headers", OTHER, "headers"))
                    .status(Status.UNAVAILABLE, with(COOKIE, "trailers")))
            .always(ROWS);
        reads.read().awaitComplete();
        assertThat(sent(reads, COOKIE)).containsExactly("null", "trailers");
        assertThat(sent(reads, OTHER)).containsExactly("null", "headers");
      }
    }

    @Test
    @DisplayName("BT-38 nothing else of what a server sends is sent back")
    void nothingElse() {
      try (Scripted reads = start()) {
        reads
            .server
            .readRows()
            .next(Script.start().status(Status.UNAVAILABLE, with("x-goog-cookie", "no")))
            .always(ROWS);
        reads.read().awaitComplete();
        assertThat(sent(reads, "x-goog-cookie")).containsExactly("null", "null");
      }
    }

    @Test
    @DisplayName("BT-38 one of bytes is kept as it is")
    void binary() {
      Metadata.Key<byte[]> bytes =
          Metadata.Key.of(COOKIE + "-bin", Metadata.BINARY_BYTE_MARSHALLER);
      Metadata trailers = new Metadata();
      trailers.put(bytes, new byte[] {0, -1, 7});
      try (Scripted reads = start()) {
        reads
            .server
            .readRows()
            .next(Script.start().status(Status.UNAVAILABLE, trailers))
            .always(ROWS);
        reads.read().awaitComplete();
        assertThat(reads.calls().get(1).metadata().get(bytes)).containsExactly(0, -1, 7);
      }
    }
  }

  @Nested
  class ToldWhenToComeBack {
    private static Script told(Status.Code code) {
      return Script.start().statusWithRetryInfo(code.toStatus(), Duration.ofMillis(1));
    }

    @ParameterizedTest(name = "{0}")
    @EnumSource(
        value = Status.Code.class,
        names = {"INVALID_ARGUMENT", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "INTERNAL"})
    @DisplayName("BT-38 any status with a RetryInfo is retried, several times in a row")
    void anyStatus(Status.Code code) {
      try (Scripted reads = start()) {
        IntStream.range(0, 7).forEach(i -> reads.server.readRows().next(told(code)));
        reads.server.readRows().next(UNAVAILABLE).next(UNAVAILABLE).always(ROWS);
        assertThat(reads.read().awaitComplete()).containsExactly("a");
        assertThat(reads.calls()).as("7, and 3 that count").hasSize(10);
      }
    }

    @Test
    @DisplayName("BT-38 ten times at most without progress")
    void tenTimes() {
      try (Scripted reads = start()) {
        reads.server.readRows().always(told(Status.Code.UNAVAILABLE));
        assertThat(Status.fromThrowable(reads.read().awaitError()).getCode())
            .isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(reads.calls()).hasSize(11);
      }
    }

    @Test
    @DisplayName("BT-38 progress gives them back")
    void progress() {
      try (Scripted reads = start()) {
        IntStream.range(0, 10)
            .forEach(i -> reads.server.readRows().next(told(Status.Code.UNAVAILABLE)));
        reads
            .server
            .readRows()
            .next(
                Script.start()
                    .rows("a")
                    .statusWithRetryInfo(Status.UNAVAILABLE, Duration.ofMillis(1)));
        IntStream.range(0, 9)
            .forEach(i -> reads.server.readRows().next(told(Status.Code.UNAVAILABLE)));
        reads.server.readRows().always(Script.start().rows("b").ok());
        assertThat(reads.read().awaitComplete()).containsExactly("a", "b");
        assertThat(reads.calls()).hasSize(21);
      }
    }

    @Test
    @DisplayName("BT-38 BT-33 with a single attempt nothing is retried")
    void retriesOff() {
      try (Scripted reads = Scripted.start(s -> s.gapTimeout(Scripted.HOUR).maxAttempts(1))) {
        reads.server.readRows().always(told(Status.Code.UNAVAILABLE));
        reads.read().awaitError();
        assertThat(reads.calls()).hasSize(1);
      }
    }

    @Test
    @DisplayName("BT-38 a call whose answer comes as a whole keeps to it too")
    void otherCalls() {
      try (Scripted reads = start()) {
        IntStream.range(0, 5)
            .forEach(i -> reads.server.sampleRowKeys().next(told(Status.Code.FAILED_PRECONDITION)));
        reads
            .server
            .sampleRowKeys()
            .next(UNAVAILABLE)
            .next(UNAVAILABLE)
            .always(Script.start().ok());
        assertThat(reads.client.sampleRowKeys("table").collectList().block(Scripted.BOUND))
            .isEmpty();
        assertThat(reads.server.sampleRowKeys().calls()).hasSize(8);
        reads.server.pingAndWarm().always(told(Status.Code.UNAVAILABLE));
        int before = reads.server.pingAndWarm().calls().size();
        assertThatThrownBy(() -> reads.client.pingAndWarm().block(Scripted.BOUND))
            .isInstanceOf(StatusRuntimeException.class);
        assertThat(reads.server.pingAndWarm().calls()).hasSize(before + 11);
      }
    }
  }
}
