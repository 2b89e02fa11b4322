package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.failure;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.HeldPort;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.cas.kit.TestCertificates;
import io.grpc.Status;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@DisplayName("CAS-2 why a server cannot be connected to, in one line that can be acted upon")
class TransportWordsTest {
  /** What a call is told, by a client with these settings. */
  private static String told(int port, UnaryOperator<CasRingBuilder> settings) {
    CasConfig config = new CasConfig(List.of(CasConfig.Shard.of("s0", "localhost:" + port)));
    try (CasRing ring = settings.apply(CasRing.builder(config).retries(0)).build()) {
      Throwable failure = failure(ring.readAll(Digest.of(new byte[1])));
      assertThat(Status.fromThrowable(failure).getCode()).isEqualTo(Status.Code.UNAVAILABLE);
      String told = String.valueOf(failure.getMessage());
      assertThat(told)
          .startsWith("UNAVAILABLE: s0 at localhost:" + port + ": ")
          .hasLineCount(1)
          .doesNotContain("Pipeline", "io.grpc", "OpenSslEngine problem");
      return told;
    }
  }

  @Nested
  @DisplayName("CAS-2 TLS")
  class Tls {
    @TempDir Path directory;
    private TestCertificates files;

    @BeforeEach
    void files() {
      files = TestCertificates.in(directory);
    }

    @Test
    @DisplayName("CAS-2 a certificate that is not trusted")
    void notTrusted() {
      try (ScriptedCas server = ScriptedCas.builder().tls(files).start()) {
        assertThat(told(server.port(), CasRingBuilder::tls))
            .contains("unable to find valid certification path")
            .endsWith("(the server's certificate is none of the trusted)");
        assertThat(told(server.port(), settings -> settings.tls(files.clientCertificate())))
            .endsWith("(the server's certificate is none of the trusted)");
      }
    }

    @Test
    @DisplayName("CAS-2 plain text to a server that expects TLS")
    void plainToTls() {
      try (ScriptedCas server = ScriptedCas.builder().tls(files).start()) {
        assertThat(told(server.port(), settings -> settings))
            .endsWith("(before HTTP/2 was spoken: does the server expect TLS?)");
      }
    }

    @Test
    @DisplayName("CAS-2 TLS to a server of plain text, without a dump of its bytes")
    void tlsToPlain() {
      try (ScriptedCas server = ScriptedCas.start()) {
        assertThat(told(server.port(), settings -> settings.tls(files.serverCertificate())))
            .endsWith(": not an SSL/TLS record (tls is set, and the server answers in plain text)");
      }
    }

    @Test
    @DisplayName("CAS-2 no client's certificate, and one that the server does not trust")
    void clientCertificate() {
      String hint = "(the server asks for a client's certificate, and one that it trusts)";
      try (ScriptedCas server = ScriptedCas.builder().mutualTls(files).start()) {
        assertThat(told(server.port(), settings -> settings.tls(files.serverCertificate())))
            .endsWith(hint);
        assertThat(
                told(
                    server.port(),
                    settings ->
                        settings.tls(
                            files.serverCertificate(),
                            files.serverCertificate(),
                            files.serverKey())))
            .endsWith(hint);
      }
    }
  }

  @Nested
  @DisplayName("CAS-1 HTTP/2 answers, and no gRPC server")
  class NoGrpc {
    private final Digest digest = Digest.of(new byte[5000]);

    private Throwable toldBy(WebServer server) {
      try (CasRing ring = CasRing.builder(server.config()).retries(0).build()) {
        return failure(ring.readAll(digest));
      }
    }

    @ParameterizedTest
    @ValueSource(ints = {404, 400, 200, 502})
    @DisplayName("CAS-1 what is there in a server's place is no server: UNAVAILABLE, in one line")
    void proxy(int status) {
      try (WebServer server = WebServer.answering(status)) {
        assertThat(toldBy(server))
            .hasMessage(
                "UNAVAILABLE: s0 at 127.0.0.1:%s: HTTP status code %s, invalid content-type:"
                    + " text/html (no gRPC server answered)",
                server.port(), status);
      }
    }

    @ParameterizedTest
    @CsvSource({"401, UNAUTHENTICATED", "403, PERMISSION_DENIED"})
    @DisplayName("CAS-1 a refusal is one, whoever says it")
    void refusal(int status, Status.Code code) {
      try (WebServer server = WebServer.answering(status)) {
        Throwable told = toldBy(server);
        assertThat(Status.fromThrowable(told).getCode()).isEqualTo(code);
        assertThat(told.getMessage()).hasLineCount(1).endsWith("(no gRPC server answered)");
      }
    }

    @Test
    @DisplayName("CAS-32 a proxy's 404 is not kept as what the server can")
    void capabilities() {
      try (WebServer away = WebServer.answering(404);
          CasRing ring = CasRing.builder(away.config()).retries(0).build()) {
        assertThat(failure(ring.capabilities("s0"))).hasMessageContaining("404");
        int port = away.port();
        away.close();
        try (PlainServer back = PlainServer.at(port)) {
          until(
              "it is asked again",
              () ->
                  CasCapabilities.UNTOLD.equals(
                      ring.capabilities("s0").onErrorComplete().block(LONG)));
        }
      }
    }
  }

  @Nested
  @DisplayName("CAS-2 other servers")
  class Others {
    /** Of one that says that to whoever connects. */
    private String toldBy(String answer) {
      try (ServerSocket server = new ServerSocket(0, 9, InetAddress.getLoopbackAddress())) {
        Thread says = new Thread(() -> say(server, answer), "says");
        says.start();
        return told(server.getLocalPort(), settings -> settings);
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    }

    private static void say(ServerSocket server, String answer) {
      try {
        while (!server.isClosed()) {
          try (Socket socket = server.accept()) {
            socket.getOutputStream().write(answer.getBytes(US_ASCII));
            // what it has been sent is read: else its close would overtake the answer
            socket.getInputStream().transferTo(OutputStream.nullOutputStream());
          }
        }
      } catch (IOException closed) {
        // the test is over
      }
    }

    @Test
    @DisplayName("CAS-2 one of HTTP/1")
    void http1() {
      assertThat(toldBy("HTTP/1.1 400 Bad Request\r\n\r\n"))
          .endsWith("Hex dump for first 5 bytes: 485454502f (no HTTP/2)");
    }

    @Test
    @DisplayName("CAS-2 one that answers with an alert of TLS")
    void alert() {
      assertThat(toldBy("\u0015\u0003\u0001\u0000\u0002\u0002\u0046\u0000\u0000"))
          .endsWith("Hex dump for first 5 bytes: 1503010002 (the server expects TLS)");
    }

    @Test
    @DisplayName("CAS-2 nobody, and no such name")
    void nobody() {
      try (HeldPort port = HeldPort.free()) {
        assertThat(told(port.number(), settings -> settings)).contains("Connection refused");
      }
    }
  }
}
