package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.cas.kit.TestCertificates;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** TLS, and files that are not what they should be. */
class TlsTest {
  @TempDir Path directory;

  private static Status.Code code(Throwable failure) {
    return ((StatusRuntimeException) failure).getStatus().getCode();
  }

  @Test
  @DisplayName("CAS-1 TLS with trusted certificates, and mutual TLS with one's own")
  void both() {
    TestCertificates certificates = TestCertificates.in(directory);
    try (ScriptedCas plain = ScriptedCas.builder().tls(certificates).start();
        ScriptedCas mutual = ScriptedCas.builder().mutualTls(certificates).start();
        CasRing one = CasRing.builder(config(plain)).tls(certificates.serverCertificate()).build();
        CasRing two =
            CasRing.builder(config(mutual))
                .tls(
                    certificates.serverCertificate(),
                    certificates.clientCertificate(),
                    certificates.clientKey())
                .build();
        CasRing nobody =
            CasRing.builder(config(mutual))
                .retries(0)
                .tls(certificates.serverCertificate())
                .build();
        CasRing stranger = CasRing.builder(config(plain)).retries(0).tls().build()) {
      Digest digest = plain.put("content");
      mutual.put("content");

      assertThat(TestRing.text(one.readAll(digest)).block(LONG)).isEqualTo("content");
      assertThat(TestRing.text(two.readAll(digest)).block(LONG)).isEqualTo("content");
      assertThat(code(failure(nobody.read(digest)))).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(code(failure(stranger.read(digest)))).isEqualTo(Status.Code.UNAVAILABLE);
    }
    assertThatThrownBy(() -> CasRing.builder(config(1)).tls(directory.resolve("none")))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("expected: a PEM file");
  }

  @Test
  @DisplayName("CAS-1 files that are not what they should be are refused by name, and at once")
  void refused() {
    TestCertificates files = TestCertificates.in(directory);
    CasRingBuilder ring = CasRing.builder(config(1));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> ring.tls(files.serverKey()))
        .withMessageStartingWith("tls: trusted " + files.serverKey())
        .withMessageContaining("(expected: certificates, as PEM)");
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> ring.tls(files.serverCertificate(), files.clientKey(), files.clientCertificate()))
        .withMessageStartingWith("tls: certificates " + files.clientKey());
    assertThatIllegalArgumentException()
        .isThrownBy(
            () ->
                ring.tls(
                    files.serverCertificate(),
                    files.clientCertificate(),
                    files.clientCertificate()))
        .withMessageStartingWith("tls: privateKey " + files.clientCertificate());
  }

  private CasConfig config(ScriptedCas server) {
    return config(server.port());
  }

  private CasConfig config(int port) {
    return new CasConfig(List.of(CasConfig.Shard.of("s0", "localhost:" + port)));
  }
}
