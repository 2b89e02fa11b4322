package dev.timebound.cas.kit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * One real server of {@link CasServers}: a process with a store and a port of its own, which it
 * keeps over its deaths. All methods may be called from any thread and block; none belongs on an
 * event loop.
 */
public final class CasServer {
  /** What the process runs: it says its port, and ends when its parent does. */
  private static final String PROGRAM =
      String.join(
          "\n",
          "import os, sys",
          "from buildstream._artifactcache.casserver import create_server",
          "server = create_server(sys.argv[1], enable_push=True,",
          "                       max_head_size=int(2e6), min_head_size=int(1e6))",
          "port = server.add_insecure_port('127.0.0.1:' + sys.argv[2])",
          "server.start()",
          "print('listens on', port, flush=True)",
          "sys.stdin.read()",
          "os._exit(0)");

  private static final Pattern READY = Pattern.compile("listens on (\\d+)");

  private final String name;
  private final Path directory;
  private final Path log;
  private int port;
  private @Nullable Process process;
  private boolean frozen;

  CasServer(String name, Path home) {
    this.name = name;
    this.directory = home.resolve(name);
    this.log = home.resolve(name + ".log");
  }

  /** What it is called: {@code cas-1} for the first. */
  public String name() {
    return name;
  }

  /** The port it listens on; the same for its whole life. */
  public synchronized int port() {
    return port;
  }

  /** The address to point a client at: {@code 127.0.0.1:port}. */
  public String hostAndPort() {
    return "127.0.0.1:" + port();
  }

  /** Whether its process is there, frozen or not. */
  public synchronized boolean isRunning() {
    return process != null && process.isAlive();
  }

  /** Whether it is frozen. */
  public synchronized boolean isFrozen() {
    return frozen;
  }

  /** How many blobs its store has. */
  public long blobs() {
    Path objects = directory.resolve("cas").resolve("objects");
    if (!Files.isDirectory(objects)) {
      return 0;
    }
    try (Stream<Path> files = Files.walk(objects)) {
      return files.filter(Files::isRegularFile).count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Stops its process where it stands (SIGSTOP): its sockets stay open, and the kernel still takes
   * connections for it. Freezing twice does nothing.
   *
   * @throws IllegalStateException where it does not run
   */
  public synchronized void freeze() {
    Process server = running();
    if (!frozen) {
      signal("STOP", server);
      Wait.until("it has stopped", () -> isStopped(server.pid()), () -> "it runs: " + this);
      frozen = true;
    }
  }

  /** Lets it go on (SIGCONT); one that is not frozen does. */
  public synchronized void thaw() {
    if (frozen) {
      signal("CONT", running());
      frozen = false;
    }
  }

  /** Ends its process at once (SIGKILL): its connections are reset, its port is closed. */
  public synchronized void kill() {
    Process server = process;
    if (server != null) {
      server.destroyForcibly();
      Wait.until("it is gone", () -> !server.isAlive(), () -> "it lives: " + this);
      process = null;
      frozen = false;
    }
  }

  /** Starts it again on its port with its store, and waits until it listens. */
  public void restart() {
    kill();
    start();
    awaitReady();
  }

  /** Begins to start it; {@link #awaitReady} waits. */
  synchronized void start() {
    try {
      Files.deleteIfExists(log);
      process =
          new ProcessBuilder(
                  CasServers.PYTHON, "-c", PROGRAM, directory.toString(), Integer.toString(port))
              .redirectErrorStream(true)
              .redirectOutput(log.toFile())
              .start();
    } catch (IOException e) {
      throw new UncheckedIOException(name + " did not start", e);
    }
  }

  void awaitReady() {
    Wait.until(name + " listens", () -> isReady() || !isRunning(), () -> "it said " + logLines());
    if (!isReady()) {
      throw new IllegalStateException(name + " ended while it started: " + logLines());
    }
  }

  private synchronized boolean isReady() {
    for (String line : logLines()) {
      Matcher ready = READY.matcher(line);
      if (ready.matches()) {
        port = Integer.parseInt(ready.group(1));
        return true;
      }
    }
    return false;
  }

  /** What it has said since its last start. */
  public List<String> logLines() {
    try {
      return Files.exists(log) ? Files.readAllLines(log) : List.of();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private Process running() {
    Process server = process;
    if (server == null || !server.isAlive()) {
      throw new IllegalStateException(name + " does not run");
    }
    return server;
  }

  /** By the kernel's letter for it; where there is no such file system a signal is quick. */
  private static boolean isStopped(long pid) {
    try {
      String line = Files.readString(Path.of("/proc/" + pid + "/stat"));
      // the name stands in brackets and may hold anything
      return line.charAt(line.lastIndexOf(')') + 2) == 'T';
    } catch (IOException none) {
      return true;
    }
  }

  private static void signal(String signal, Process process) {
    try {
      Process sent =
          new ProcessBuilder(
                  "sh", "-c", String.format(Locale.ROOT, "kill -%s %d", signal, process.pid()))
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start();
      if (!sent.waitFor(10, TimeUnit.SECONDS) || sent.exitValue() != 0) {
        throw new IllegalStateException("signal " + signal + " was not sent to " + process.pid());
      }
    } catch (IOException e) {
      throw new UncheckedIOException("signal " + signal, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted in signal " + signal, e);
    }
  }

  @Override
  public synchronized String toString() {
    return name + " " + hostAndPort() + (isRunning() ? frozen ? " (frozen)" : "" : " (dead)");
  }
}
