package dev.timebound.fetch.s3;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A real server that speaks S3, as a process of its own: one for this JVM, ended with it. */
final class S3Server {
  private static final Pattern PORTS =
      Pattern.compile("Tomcat started on ports? .*?(\\d+) \\(http\\)");

  private static CompletableFuture<S3Server> shared = new CompletableFuture<>();
  private static boolean started;

  private final int port;

  private S3Server(int port) {
    this.port = port;
  }

  int port() {
    return port;
  }

  static S3Server shared() {
    synchronized (S3Server.class) {
      if (!started) {
        started = true;
        start();
      }
    }
    return shared.orTimeout(2, TimeUnit.MINUTES).join();
  }

  private static void start() {
    try {
      Process process =
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                  "-Xmx256m",
                  "-XX:TieredStopAtLevel=1",
                  "-Xshare:auto",
                  "-jar",
                  jar().toString(),
                  "--server.port=0",
                  "--http.port=0",
                  "--com.adobe.testing.s3mock.httpPort=0",
                  "--com.adobe.testing.s3mock.store.initialBuckets=" + S3Bench.BUCKET)
              .redirectErrorStream(true)
              .start();
      Runtime.getRuntime().addShutdownHook(new Thread(process::destroy, "s3-server-end"));
      Thread reader = new Thread(() -> read(process), "s3-server-log");
      reader.setDaemon(true);
      reader.start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Its output has to be read for as long as it runs; the first lines are its story if it fails.
   */
  private static void read(Process process) {
    List<String> first = new ArrayList<>();
    try (BufferedReader lines =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      String line;
      int port = 0;
      while ((line = lines.readLine()) != null) {
        if (first.size() < 100) {
          first.add(line);
        }
        Matcher ports = PORTS.matcher(line);
        if (ports.find()) {
          port = Integer.parseInt(ports.group(1));
        }
        if (port != 0 && line.contains("Started S3MockApplication")) {
          shared.complete(new S3Server(port));
        }
      }
    } catch (IOException e) {
      first.add(e.toString());
    }
    shared.completeExceptionally(
        new IllegalStateException("the S3 server ended: " + String.join("\n", first)));
  }

  /** A program, though it stands on the class path: what starts it is at its top. */
  private static Path jar() {
    try {
      return Path.of(
          Class.forName("org.springframework.boot.loader.launch.JarLauncher")
              .getProtectionDomain()
              .getCodeSource()
              .getLocation()
              .toURI());
    } catch (ClassNotFoundException | URISyntaxException e) {
      throw new IllegalStateException("s3mock's program is not on the class path", e);
    }
  }
}
