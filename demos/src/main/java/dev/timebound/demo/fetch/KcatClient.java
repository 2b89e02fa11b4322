package dev.timebound.demo.fetch;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** kcat, which is librdkafka, where it is installed; a process of its own. */
final class KcatClient implements ReadClient {
  /** At a line's end: what has none was cut off when kcat was ended. */
  private static final char END = ';';

  private final Process process;
  private final Account account;
  private final Thread thread = new Thread(this::read, "demo-kcat");
  private volatile boolean closing;
  private volatile String failure = "";

  private KcatClient(Process process, Account account) {
    this.process = process;
    this.account = account;
  }

  static boolean isInstalled() {
    String path = System.getenv("PATH");
    return path != null
        && Stream.of(path.split(File.pathSeparator))
            .anyMatch(directory -> Files.isExecutable(Path.of(directory, "kcat")));
  }

  static KcatClient start(String servers, Account account) throws IOException {
    Process process =
        new ProcessBuilder(
                "kcat",
                "-b",
                servers,
                "-C",
                "-t",
                Backlog.TOPIC,
                "-o",
                "0",
                "-q",
                "-u",
                "-X",
                "fetch.wait.max.ms=" + MAX_WAIT_MILLIS,
                "-X",
                "max.partition.fetch.bytes=" + PARTITION_FETCH_BYTES,
                "-f",
                "%p %k" + END + "\\n")
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    KcatClient client = new KcatClient(process, account);
    client.thread.setDaemon(true);
    client.thread.start();
    return client;
  }

  private void read() {
    try (BufferedReader from = process.inputReader(StandardCharsets.US_ASCII)) {
      from.lines().forEach(line -> read(line, account));
      if (!closing) {
        failure = "kcat has ended, with " + process.waitFor();
      }
    } catch (IOException | UncheckedIOException | IllegalArgumentException e) {
      failure = closing ? "" : e.toString();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  static void read(String line, Account into) {
    int space = line.indexOf(' ');
    if (space > 0 && line.charAt(line.length() - 1) == END) {
      into.received(
          Integer.parseInt(line, 0, space, 10),
          Long.parseLong(line, space + 1, line.length() - 1, 10));
    }
  }

  @Override
  public String failure() {
    return failure;
  }

  @Override
  public void close() throws InterruptedException {
    closing = true;
    process.destroyForcibly().waitFor();
    thread.join();
  }
}
