package dev.timebound.cas;

import io.grpc.ChannelCredentials;
import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.shaded.io.grpc.netty.NettySslContextChannelCredentials;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContextBuilder;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.CertificateFactory;
import java.util.Objects;
import javax.net.ssl.SSLException;

/** Credentials from PEM files, each of which is read and understood before it is used. */
final class Tls {
  private Tls() {}

  static ChannelCredentials of(Path trusted) {
    requireCertificates("trusted", trusted);
    return made("trusted " + trusted, GrpcSslContexts.forClient().trustManager(trusted.toFile()));
  }

  static ChannelCredentials of(Path trusted, Path certificates, Path privateKey) {
    requireCertificates("trusted", trusted);
    requireCertificates("certificates", certificates);
    requireReadable("privateKey", privateKey);
    SslContextBuilder context = GrpcSslContexts.forClient().trustManager(trusted.toFile());
    try {
      context.keyManager(certificates.toFile(), privateKey.toFile());
    } catch (IllegalArgumentException e) {
      throw refused("privateKey " + privateKey, "an unencrypted key in PKCS#8, as PEM", e);
    }
    return made("certificates " + certificates + " with privateKey " + privateKey, context);
  }

  private static ChannelCredentials made(String what, SslContextBuilder context) {
    try {
      return NettySslContextChannelCredentials.create(context.build());
    } catch (SSLException | IllegalArgumentException e) {
      throw refused(what, "PEM files that TLS can use", e);
    }
  }

  private static void requireCertificates(String setting, Path file) {
    try (InputStream pem = Files.newInputStream(Objects.requireNonNull(file, setting))) {
      if (CertificateFactory.getInstance("X.509").generateCertificates(pem).isEmpty()) {
        throw refused(setting + " " + file, "certificates, as PEM", null);
      }
    } catch (IOException e) {
      throw unreadable(setting, e);
    } catch (GeneralSecurityException e) {
      throw refused(setting + " " + file, "certificates, as PEM", e);
    }
  }

  private static void requireReadable(String setting, Path file) {
    try (InputStream pem = Files.newInputStream(Objects.requireNonNull(file, setting))) {
      int unused = pem.read();
    } catch (IOException e) {
      throw unreadable(setting, e);
    }
  }

  private static UncheckedIOException unreadable(String setting, IOException e) {
    return new UncheckedIOException(
        "tls: " + setting + " " + e.getMessage() + " (expected: a PEM file that can be read)", e);
  }

  private static IllegalArgumentException refused(
      String what, String expected, @org.jspecify.annotations.Nullable Throwable cause) {
    String why = cause == null ? "holds none" : innermost(cause);
    return new IllegalArgumentException(
        "tls: " + what + ": " + why + " (expected: " + expected + ")", cause);
  }

  private static String innermost(Throwable error) {
    Throwable inner = error;
    while (inner.getCause() != null) {
      inner = inner.getCause();
    }
    return String.valueOf(inner.getMessage()).lines().findFirst().orElse("");
  }
}
