package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** An unchanged kcat, which is librdkafka, where one is installed. */
@NullUnmarked // fields are set before each test
class KcatTest {
  private static final String TOPIC = "kcat";
  private static final int RECORDS = 400;

  private final FaultyLog log = new FaultyLog();
  private final List<Kcat> running = new ArrayList<>();
  private KafkaGateway gateway;

  @BeforeAll
  static void installed() {
    boolean there =
        Stream.of(System.getenv("PATH").split(File.pathSeparator))
            .anyMatch(directory -> Files.isExecutable(Path.of(directory, "kcat")));
    if ("required".equals(System.getenv("TIMEBOUND_KCAT"))) {
      assertThat(there).as("kcat is required here, and not on the PATH").isTrue();
    }
    assumeTrue(there, "kcat is not installed (Debian: apt-get install kcat)");
  }

  @BeforeEach
  void start() {
    gateway =
        KafkaGateway.builder(log)
            .groupDelay(Duration.ofMillis(50))
            .fetching(f -> f.extraTime(Duration.ofMillis(500)))
            .start()
            .block();
  }

  @AfterEach
  void stop() {
    running.forEach(Kcat::close);
    Until.holds(() -> gateway.connections() == 0);
    gateway.stop().block();
    Until.holds(() -> log.hanging() == 0 && log.waiting() == 0);
  }

  private Kcat kcat(String... arguments) throws IOException {
    Kcat kcat = new Kcat(gateway, arguments);
    running.add(kcat);
    return kcat;
  }

  private void write(int partition) throws Exception {
    Kcat producer = kcat("-P", "-t", TOPIC, "-p", String.valueOf(partition));
    producer.give(Clients.numbers(RECORDS));
    assertThat(producer.exit()).isZero();
  }

  @Test
  @DisplayName("what kcat writes it reads, all, in order, once, and then sees the end")
  void roundTrip() throws Exception {
    write(0);

    Kcat consumer = kcat("-C", "-t", TOPIC, "-o", "beginning", "-e", "-q");

    assertThat(consumer.exit()).isZero();
    assertThat(consumer.lines()).isEqualTo(Clients.numbers(RECORDS));
  }

  @Test
  @DisplayName("an idempotent producer with compression")
  void idempotent() throws Exception {
    Kcat producer =
        kcat("-P", "-t", TOPIC, "-p", "1", "-z", "lz4", "-X", "enable.idempotence=true");
    producer.give(Clients.numbers(RECORDS));
    assertThat(producer.exit()).isZero();

    Kcat consumer = kcat("-C", "-t", TOPIC, "-o", "beginning", "-e", "-q");

    assertThat(consumer.exit()).isZero();
    assertThat(consumer.lines()).isEqualTo(Clients.numbers(RECORDS));
  }

  @Test
  @DisplayName(
      "FE-10 with a stalled partition the others come, and -e sees no end before there is" + " one")
  void stalled() throws Exception {
    for (int p = 0; p < 3; p++) {
      write(p);
    }
    log.stallReads(TOPIC, 0);
    noFalseEnd();
  }

  @Test
  @DisplayName("FE-11 with stalled offsets the others come, and -e sees no end before there is one")
  void stalledOffsets() throws Exception {
    for (int p = 0; p < 3; p++) {
      write(p);
    }
    log.stallOffsets(TOPIC, 0);
    noFalseEnd();
  }

  private void noFalseEnd() throws Exception {
    Kcat consumer = kcat("-C", "-t", TOPIC, "-o", "0", "-e", "-q", "-u", "-f", "%p %s\\n");
    Until.holds(() -> consumer.lines().size() >= 2 * RECORDS);
    int stalls = log.stalls();
    // some more rounds, with the others at their end
    Until.holds(() -> log.stalls() >= stalls + 3);
    assertThat(consumer.isRunning()).isTrue();
    assertThat(consumer.lines()).noneMatch(line -> line.startsWith("0 "));

    log.heal();

    assertThat(consumer.exit()).isZero();
    for (int p = 0; p < 3; p++) {
      String own = p + " ";
      assertThat(
              consumer.lines().stream()
                  .filter(line -> line.startsWith(own))
                  .map(line -> line.substring(2)))
          .isEqualTo(Clients.numbers(RECORDS));
    }
  }

  @Test
  @DisplayName("a group: the next member goes on where the last one committed")
  void group() throws Exception {
    write(0);
    String[] member = {"-G", "kcats", "-c", "150", "-q", "-X", "auto.offset.reset=earliest", TOPIC};
    Kcat first = kcat(member);
    assertThat(first.exit()).isZero();
    Kcat second = kcat(member);
    assertThat(second.exit()).isZero();

    assertThat(first.lines()).isEqualTo(Clients.numbers(RECORDS).subList(0, 150));
    assertThat(second.lines()).isEqualTo(Clients.numbers(RECORDS).subList(150, 300));
  }

  /** One run of kcat. */
  private static final class Kcat implements AutoCloseable {
    private final Process process;
    private final List<String> lines = Collections.synchronizedList(new ArrayList<>());
    private final Thread reader;

    Kcat(KafkaGateway gateway, String... arguments) throws IOException {
      List<String> command = new ArrayList<>(List.of("kcat", "-b", gateway.bootstrapServers()));
      command.addAll(List.of(arguments));
      process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
      reader = new Thread(this::read, "kcat-reader");
      reader.start();
    }

    private void read() {
      try (BufferedReader from = process.inputReader(StandardCharsets.UTF_8)) {
        from.lines().forEach(lines::add);
      } catch (IOException | java.io.UncheckedIOException e) {
        // killed
      }
    }

    void give(List<String> values) throws IOException {
      try (OutputStream to = process.getOutputStream()) {
        to.write((String.join("\n", values) + "\n").getBytes(StandardCharsets.UTF_8));
      }
    }

    List<String> lines() {
      synchronized (lines) {
        return List.copyOf(lines);
      }
    }

    boolean isRunning() {
      return process.isAlive();
    }

    int exit() throws InterruptedException {
      if (!process.waitFor(Clients.PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
        throw new AssertionError("still running, with " + lines().size() + " lines");
      }
      reader.join();
      return process.exitValue();
    }

    @Override
    public void close() {
      process.destroyForcibly();
      try {
        process.waitFor();
        reader.join();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
