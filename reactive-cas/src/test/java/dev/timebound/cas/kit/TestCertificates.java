package dev.timebound.cas.kit;

import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.shaded.io.netty.handler.ssl.ClientAuth;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContext;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContextBuilder;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A server's and a client's certificate, self-signed, made by this JVM's {@code keytool}: for
 * {@code localhost} and {@code 127.0.0.1}, good for a day. PEM, in files of a directory of the
 * test's.
 */
public final class TestCertificates {
  private static final String PASSWORD = "changeit";

  private final Path directory;
  private final Pair server;
  private final Pair client;

  private record Pair(X509Certificate certificate, PrivateKey key) {}

  private TestCertificates(Path directory, Pair server, Pair client) {
    this.directory = directory;
    this.server = server;
    this.client = client;
  }

  /** Makes both, in about a second. */
  public static TestCertificates in(Path directory) {
    return new TestCertificates(directory, make(directory, "server"), make(directory, "client"));
  }

  /** What a client is to trust: the server's certificate. */
  public Path serverCertificate() {
    return directory.resolve("server.crt");
  }

  /** The server's key, PKCS #8. */
  public Path serverKey() {
    return directory.resolve("server.key");
  }

  /** What a client shows. */
  public Path clientCertificate() {
    return directory.resolve("client.crt");
  }

  /** The client's key, PKCS #8. */
  public Path clientKey() {
    return directory.resolve("client.key");
  }

  SslContext forServer(boolean mutual) {
    try {
      SslContextBuilder builder = SslContextBuilder.forServer(server.key(), server.certificate());
      if (mutual) {
        builder.trustManager(client.certificate()).clientAuth(ClientAuth.REQUIRE);
      }
      return GrpcSslContexts.configure(builder).build();
    } catch (IOException e) {
      throw new UncheckedIOException("TLS of a scripted store", e);
    }
  }

  private static Pair make(Path directory, String name) {
    Path store = directory.resolve(name + ".p12");
    run(
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
            "-genkeypair",
            "-alias",
            name,
            "-keyalg",
            "EC",
            "-dname",
            "CN=" + name,
            "-ext",
            "SAN=dns:localhost,ip:127.0.0.1",
            "-validity",
            "1",
            "-storetype",
            "PKCS12",
            "-keystore",
            store.toString(),
            "-storepass",
            PASSWORD));
    try (InputStream in = Files.newInputStream(store)) {
      KeyStore keys = KeyStore.getInstance("PKCS12");
      keys.load(in, PASSWORD.toCharArray());
      Key key = keys.getKey(name, PASSWORD.toCharArray());
      Pair pair = new Pair((X509Certificate) keys.getCertificate(name), (PrivateKey) key);
      pem(directory.resolve(name + ".crt"), "CERTIFICATE", pair.certificate().getEncoded());
      pem(directory.resolve(name + ".key"), "PRIVATE KEY", pair.key().getEncoded());
      return pair;
    } catch (IOException e) {
      throw new UncheckedIOException("certificate in " + store, e);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("certificate in " + store, e);
    }
  }

  private static void pem(Path file, String type, byte[] der) throws IOException {
    String base64 =
        Base64.getMimeEncoder(64, "\n".getBytes(StandardCharsets.US_ASCII)).encodeToString(der);
    Files.writeString(
        file, "-----BEGIN " + type + "-----\n" + base64 + "\n-----END " + type + "-----\n");
  }

  private static void run(List<String> command) {
    try {
      Process process =
          new ProcessBuilder(command)
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start();
      if (!process.waitFor(1, TimeUnit.MINUTES) || process.exitValue() != 0) {
        process.destroyForcibly();
        throw new IllegalStateException("no certificate made by " + command);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot run " + command, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted in " + command, e);
    }
  }
}
