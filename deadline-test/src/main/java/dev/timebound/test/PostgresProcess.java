package dev.timebound.test;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The processes of one server: the postmaster and all of its children. Not thread-safe; its server
 * guards it.
 */
final class PostgresProcess {
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  // lines of postmaster.pid
  private static final int SHARED_MEMORY_LINE = 6;
  private static final int STATUS_LINE = 7;

  private final PostgresBinaries binaries;
  private final Path data;
  private final Path log;
  private @Nullable Process postmaster;
  private boolean frozen;

  PostgresProcess(PostgresBinaries binaries, Path data, Path log) {
    this.binaries = binaries;
    this.data = data;
    this.log = log;
  }

  boolean isRunning() {
    return postmaster != null && postmaster.isAlive();
  }

  boolean isFrozen() {
    return frozen;
  }

  Path directory() {
    return data;
  }

  /** The processes that there are, the postmaster first; empty where it does not run. */
  List<Long> pids() {
    List<Long> all = new ArrayList<>();
    if (postmaster != null && postmaster.isAlive()) {
      all.add(postmaster.pid());
      all.addAll(children(postmaster));
    }
    return all;
  }

  /** Starts it and waits until it takes connections. */
  void start() {
    int before = logLines().size();
    try {
      // what a killed one left: its number may belong to another process by now
      Files.deleteIfExists(data.resolve("postmaster.pid"));
      postmaster =
          PostgresBinaries.process(binaries.command("postgres", "-D", data.toString()))
              .redirectInput(ProcessBuilder.Redirect.from(Path.of("/dev/null").toFile()))
              .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
              .start();
    } catch (IOException e) {
      throw new UncheckedIOException("Postgres in " + data + " did not start", e);
    }
    Process started = postmaster;
    Await.until(
        "Postgres takes connections",
        () -> isReady(started) || !started.isAlive(),
        () -> "it logged " + logLines().stream().skip(before).toList(),
        PATIENCE);
    if (!started.isAlive()) {
      throw new IllegalStateException(
          "Postgres ended while it started: " + logLines().stream().skip(before).toList());
    }
  }

  private boolean isReady(Process started) {
    List<String> lines = pidLines(data);
    return lines.size() > STATUS_LINE
        && lines.get(0).strip().equals(Long.toString(started.pid()))
        && lines.get(STATUS_LINE).strip().equals("ready");
  }

  /** Stops every process of it where it stands; returns when all of them have stopped. */
  void freeze() {
    Process server = running();
    // the postmaster first: a stopped one has no more children
    signal("STOP", Set.of(server.pid()));
    awaitStopped(Set.of(server.pid()));
    Set<Long> stopped = new HashSet<>();
    for (Set<Long> all = children(server); !stopped.containsAll(all); all = children(server)) {
      signal("STOP", all);
      awaitStopped(all);
      stopped.addAll(all);
    }
    frozen = true;
  }

  void thaw() {
    Process server = running();
    Set<Long> all = children(server);
    all.add(server.pid());
    signal("CONT", all);
    frozen = false;
  }

  /** Ends every process of it at once, as the kernel would when memory runs out. */
  void kill() {
    Process server = running();
    // stopped first, or the postmaster would answer the death of a child with new children
    signal("STOP", Set.of(server.pid()));
    awaitStopped(Set.of(server.pid()));
    Set<Long> all = children(server);
    Set<Long> children = Set.copyOf(all);
    all.add(server.pid());
    signal("KILL", all);
    awaitEnd(server);
    Await.until(
        "all processes of the server are gone",
        () -> children.stream().noneMatch(PostgresProcess::isAlive),
        () -> "some live of " + children,
        PATIENCE);
    frozen = false;
  }

  /** Ends it in order ("fast": sessions are ended by the server, everything is written). */
  void stop() {
    Process server = running();
    if (frozen) {
      thaw();
    }
    signal("INT", Set.of(server.pid()));
    awaitEndOrKill(server, Duration.ofSeconds(10));
  }

  /** Ends it without a last checkpoint; nothing is left of it but its directory. */
  void close() {
    askToEnd();
    Process server = postmaster;
    if (server != null) {
      awaitEndOrKill(server, Duration.ofSeconds(5));
    }
    // there is something to remove only where it was killed
    removeSharedMemory(data);
  }

  /** Makes it begin to end as {@link #close} does, without waiting. */
  void askToEnd() {
    if (postmaster == null || !postmaster.isAlive()) {
      return;
    }
    signal("QUIT", Set.of(postmaster.pid()));
    if (frozen) {
      thaw();
    }
  }

  private void awaitEndOrKill(Process server, Duration patience) {
    boolean ended;
    try {
      ended = server.waitFor(patience.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      ended = false;
    }
    if (!ended) {
      kill();
    }
  }

  private void awaitEnd(Process server) {
    Await.until(
        "the postmaster is gone", () -> !server.isAlive(), () -> "it lives: " + server, PATIENCE);
  }

  /**
   * Removes the small segment by which a next server would learn that one is gone: no one else does
   * where that was killed.
   */
  static void removeSharedMemory(Path data) {
    List<String> lines = pidLines(data);
    if (lines.size() > SHARED_MEMORY_LINE) {
      String[] keyAndId = lines.get(SHARED_MEMORY_LINE).strip().split("\\s+", -1);
      if (keyAndId.length == 2) {
        sh("ipcrm -m " + Integer.parseInt(keyAndId[1]));
      }
    }
  }

  private Process running() {
    if (postmaster == null || !postmaster.isAlive()) {
      throw new IllegalStateException("Postgres in " + data + " is not running");
    }
    return postmaster;
  }

  /** What it has logged, over all of its starts. */
  List<String> logLines() {
    try {
      return Files.readAllLines(log);
    } catch (NoSuchFileException e) {
      return List.of();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static List<String> pidLines(Path data) {
    try {
      return Files.readAllLines(data.resolve("postmaster.pid"));
    } catch (IOException e) {
      return List.of();
    }
  }

  private static Set<Long> children(Process server) {
    return server
        .descendants()
        .map(ProcessHandle::pid)
        .collect(Collectors.toCollection(HashSet::new));
  }

  /** Whether it runs; one that has ended and was not yet taken notice of does not. */
  static boolean isAlive(long pid) {
    return ProcessHandle.of(pid).isPresent() && !state(pid).equals("Z");
  }

  private static void awaitStopped(Set<Long> pids) {
    Await.until(
        "the processes have stopped",
        () -> pids.stream().map(PostgresProcess::state).allMatch("TZ"::contains),
        () -> "their states are " + pids.stream().map(PostgresProcess::state).toList(),
        PATIENCE);
  }

  /** The kernel's letter: T is stopped; empty where it is gone. */
  static String state(long pid) {
    Path stat = Path.of("/proc/" + pid + "/stat");
    if (!Files.isDirectory(Path.of("/proc/self"))) {
      // no such file system here; a signal is quick
      return "T";
    }
    try {
      String line = Files.readString(stat);
      // the name stands in brackets and may hold anything
      return line.substring(line.lastIndexOf(')') + 2, line.lastIndexOf(')') + 3);
    } catch (IOException e) {
      return "";
    }
  }

  private static void signal(String name, Set<Long> pids) {
    List<String> numbers = new ArrayList<>();
    pids.forEach(pid -> numbers.add(Long.toString(pid)));
    sh(String.format(Locale.ROOT, "kill -%s %s", name, String.join(" ", numbers)));
  }

  private static void sh(String command) {
    try {
      // what ended by itself meanwhile makes it complain, and is no fault
      Process process =
          new ProcessBuilder("sh", "-c", command)
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start();
      if (!process.waitFor(10, TimeUnit.SECONDS)) {
        throw new IllegalStateException("no end within 10 s: " + command);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot run " + command, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted in " + command, e);
    }
  }
}
