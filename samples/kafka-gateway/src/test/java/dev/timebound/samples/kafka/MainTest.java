package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@DisplayName("What cannot start says why in one line, and exits with 1")
@Timeout(60)
class MainTest {
  @TempDir Path directory;

  private static String refused(String... args) throws InterruptedException {
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    int exit = Main.run(args, new PrintStream(err, true, StandardCharsets.UTF_8));
    assertThat(exit).isEqualTo(1);
    String said = err.toString(StandardCharsets.UTF_8);
    assertThat(said.lines()).as(said).hasSize(1);
    return said;
  }

  private static ServerSocket taken() throws IOException {
    return new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
  }

  @Test
  @DisplayName("a port that is taken; the directory is given free again")
  void portTaken() throws Exception {
    try (ServerSocket other = taken()) {
      String port = String.valueOf(other.getLocalPort());
      for (int i = 0; i < 2; i++) {
        assertThat(refused("--port", port, "--segments", directory.toString()))
            .contains("127.0.0.1")
            .contains(port)
            .contains("Address already in use");
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "--port 99999, --port: 99999",
    "--topic a:0, --topic: a:0",
    "--what, --what",
    "--port 0 --host 192.0.2.1, 192.0.2.1",
    "--port 0 --host no.such.host.invalid, no.such.host.invalid",
    "--postgres nope, --postgres: nope",
  })
  @DisplayName("arguments that make no sense")
  void arguments(String line, String told) throws Exception {
    assertThat(refused(line.split(" "))).contains(told);
  }

  @Test
  @DisplayName("a directory that cannot be one")
  void directory() throws Exception {
    Path file = Files.createFile(directory.resolve("file"));
    assertThat(refused("--port", "0", "--segments", file.toString()))
        .contains(file + "\n")
        .contains("Exception: ");
  }

  @Test
  @DisplayName("a Postgres that is not there")
  void noPostgres() throws Exception {
    int port;
    try (ServerSocket other = taken()) {
      port = other.getLocalPort();
    }
    assertThat(refused("--port", "0", "--postgres", "r2dbc:postgresql://me:it@127.0.0.1:" + port))
        .contains("127.0.0.1")
        .contains(":" + port)
        .contains("refused");
  }
}
