package dev.timebound.cas.kit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Several real content-addressable stores, BuildStream's, as processes on free ports of this
 * machine, each of which can be killed, frozen and started again.
 *
 * <pre>{@code
 * try (CasServers servers = CasServers.start(4)) {
 *   CasServer first = servers.get(0);
 *   // a client for first.hostAndPort() … with no instance name
 *   first.freeze();
 *   servers.heal();
 * }
 * }</pre>
 *
 * <p>They come with Debian's package {@code buildstream}; {@link #available()} says why not where
 * they are not there. They serve SHA-256 alone, batches of 1 MiB, no compression, no instance name
 * and no QueryWriteStatus, and know no empty blob. Nothing is left when they are closed, or when
 * the JVM ends.
 */
public final class CasServers implements AutoCloseable {
  static final String PYTHON = "/usr/bin/python3";
  private static final String PREFIX = "timebound-cas-";
  private static final int PATIENCE_SECONDS = 60;

  private final Path home;
  private final List<CasServer> servers;

  private CasServers(int count) {
    Homes.clearAwayAfterKilledJvms();
    try {
      home = Files.createTempDirectory(PREFIX + ProcessHandle.current().pid() + "-");
    } catch (IOException e) {
      throw new UncheckedIOException("no directory for stores", e);
    }
    servers =
        IntStream.rangeClosed(1, count).mapToObj(i -> new CasServer("cas-" + i, home)).toList();
    Homes.OPEN.add(this);
    try {
      // all at once: each takes a second
      servers.forEach(CasServer::start);
      servers.forEach(CasServer::awaitReady);
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  /** Empty where they can be started; else why not. Asked once, which takes a second. */
  public static Optional<String> unavailable() {
    return Optional.of(Asked.WHY_NOT).filter(why -> !why.isEmpty());
  }

  /** Whether they can be started; {@link #unavailable()} says why not. */
  public static boolean available() {
    return unavailable().isEmpty();
  }

  /**
   * Starts so many with empty stores, in about two seconds.
   *
   * @throws IllegalStateException where they cannot be started; see {@link #available()}
   */
  public static CasServers start(int count) {
    if (count < 1) {
      throw new IllegalArgumentException("count: " + count + " (expected: > 0)");
    }
    unavailable()
        .ifPresent(
            why -> {
              throw new IllegalStateException(why);
            });
    return new CasServers(count);
  }

  /** All of them, in order. */
  public List<CasServer> all() {
    return servers;
  }

  /** One of them, from 0. */
  public CasServer get(int index) {
    return servers.get(index);
  }

  /** Thaws what is frozen and starts what is dead. */
  public void heal() {
    for (CasServer server : servers) {
      if (server.isRunning()) {
        server.thaw();
      } else {
        server.restart();
      }
    }
  }

  /** Kills all and deletes their stores. Closing twice does nothing. */
  @Override
  public void close() {
    if (Homes.OPEN.remove(this)) {
      servers.forEach(CasServer::kill);
      Homes.delete(home);
    }
  }

  @Override
  public String toString() {
    return "CasServers " + servers;
  }

  /** What every JVM sees to: that nothing stays behind. */
  private static final class Homes {
    static final Set<CasServers> OPEN = ConcurrentHashMap.newKeySet();

    static {
      Runtime.getRuntime()
          .addShutdownHook(
              new Thread(() -> List.copyOf(OPEN).forEach(CasServers::close), "timebound-cas-stop"));
    }

    /** A killed JVM's servers see their input end, but for frozen ones; its directories stay. */
    static void clearAwayAfterKilledJvms() {
      try (Stream<Path> all = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
        all.filter(path -> path.getFileName().toString().startsWith(PREFIX))
            .filter(Homes::isAbandoned)
            .forEach(
                path -> {
                  killWhatRunsIn(path);
                  delete(path);
                });
      } catch (IOException | UncheckedIOException e) {
        // another user's, or being cleared by another JVM: not this one's to clear
      }
    }

    private static boolean isAbandoned(Path home) {
      String pid = home.getFileName().toString().substring(PREFIX.length()).split("-", 2)[0];
      return pid.matches("\\d{1,18}") && ProcessHandle.of(Long.parseLong(pid)).isEmpty();
    }

    private static void killWhatRunsIn(Path home) {
      ProcessHandle.allProcesses()
          .filter(
              process ->
                  Stream.of(process.info().arguments().orElse(new String[0]))
                      .anyMatch(argument -> argument.startsWith(home + "/")))
          .forEach(ProcessHandle::destroyForcibly);
    }

    static void delete(Path tree) {
      try (Stream<Path> all = Files.walk(tree)) {
        for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
          Files.deleteIfExists(path);
        }
      } catch (IOException e) {
        throw new UncheckedIOException("could not delete " + tree, e);
      }
    }
  }

  private static final class Asked {
    static final String WHY_NOT = whyNot();

    private static String whyNot() {
      String install = "no BuildStream server (apt-get install buildstream): ";
      if (!Files.isExecutable(Path.of(PYTHON))) {
        return install + "no " + PYTHON;
      }
      try {
        Process asked =
            new ProcessBuilder(
                    PYTHON, "-c", "from buildstream._artifactcache.casserver import create_server")
                .redirectErrorStream(true)
                .start();
        asked.getOutputStream().close();
        List<String> said =
            new String(asked.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                .strip()
                .lines()
                .toList();
        if (asked.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS) && asked.exitValue() == 0) {
          return "";
        }
        return String.format(
            Locale.ROOT, "%s%s", install, said.isEmpty() ? asked : said.get(said.size() - 1));
      } catch (IOException e) {
        return install + e.getMessage();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted", e);
      }
    }
  }
}
