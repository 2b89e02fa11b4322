package dev.timebound.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A JVM of its own, of this Java and with this class path, that runs one main class. What it prints
 * is read line by line: a line of {@link Figures} is kept, {@code READY} lines are for {@link
 * #ready}, all others go to a listener, on a thread of the fork's own. Closing it closes its
 * standard input, at which a server ends by itself; after 10 s it is ended.
 */
final class Fork implements AutoCloseable {
  private static final String READY = "READY ";
  private static final int TAIL = 30;

  private final String main;
  private final Process process;
  private final Consumer<String> listener;
  private final Thread reader = new Thread(this::read, "fork-output");
  private final CompletableFuture<String> ready = new CompletableFuture<>();
  private final Deque<String> tail = new ArrayDeque<>();
  private volatile @Nullable Figures figures;

  private Fork(String main, Process process, Consumer<String> listener) {
    this.main = main;
    this.process = process;
    this.listener = listener;
    reader.setDaemon(true);
  }

  /**
   * Starts one.
   *
   * @param options of the JVM
   * @param listener gets what it prints
   */
  static Fork start(
      Class<?> main, List<String> options, List<String> args, Consumer<String> listener)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(options);
    command.add("-cp");
    command.add(System.getProperty("java.class.path"));
    command.add(main.getName());
    command.addAll(args);
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    Fork fork = new Fork(main.getSimpleName(), process, listener);
    fork.reader.start();
    return fork;
  }

  /**
   * Runs one to its end and gives its figures.
   *
   * @throws IOException where it failed or gave none; the message has the end of its output
   */
  static Figures run(
      Class<?> main, List<String> options, List<String> args, Consumer<String> listener)
      throws IOException, InterruptedException {
    try (Fork fork = start(main, options, args, listener)) {
      return fork.finish();
    }
  }

  /**
   * Waits until a server says {@code READY <value>} and gives the value.
   *
   * @throws IOException where it ended without, or said nothing for a minute
   */
  String ready() throws IOException, InterruptedException {
    try {
      return ready.get(1, TimeUnit.MINUTES);
    } catch (ExecutionException | TimeoutException e) {
      throw new IOException(main + " was never ready" + output(), e);
    }
  }

  /** Waits for its end and gives its figures. */
  Figures finish() throws IOException, InterruptedException {
    int code = process.waitFor();
    reader.join();
    Figures found = figures;
    if (code != 0 || found == null) {
      throw new IOException(main + " ended with code " + code + output());
    }
    return found;
  }

  /** Asks a server to end, and gives its figures. */
  Figures stop() throws IOException, InterruptedException {
    process.getOutputStream().close();
    return finish();
  }

  /** Reads all the time, wanted or not: a full pipe would stop the other side. */
  private void read() {
    try (BufferedReader output =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      String line;
      while ((line = output.readLine()) != null) {
        take(line);
      }
      ready.completeExceptionally(new IOException("its output ended"));
    } catch (IOException e) {
      ready.completeExceptionally(e);
    }
  }

  private void take(String line) {
    if (Figures.isLine(line)) {
      figures = Figures.parse(line);
    } else if (line.startsWith(READY)) {
      ready.complete(line.substring(READY.length()));
    } else {
      synchronized (tail) {
        tail.add(line);
        if (tail.size() > TAIL) {
          tail.remove();
        }
      }
      listener.accept(line);
    }
  }

  private String output() {
    synchronized (tail) {
      return tail.isEmpty() ? " and said nothing" : ":\n" + String.join("\n", tail);
    }
  }

  @Override
  public void close() throws InterruptedException, IOException {
    process.getOutputStream().close();
    if (!process.waitFor(10, TimeUnit.SECONDS)) {
      process.destroyForcibly().waitFor();
    }
  }
}
