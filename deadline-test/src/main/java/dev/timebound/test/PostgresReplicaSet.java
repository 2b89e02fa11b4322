package dev.timebound.test;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * A real Postgres primary with real streaming hot standbys, as processes on free ports of this
 * machine, and faults for each.
 *
 * <pre>{@code
 * PostgresReplicaSet postgres = PostgresReplicaSet.shared();
 * postgres.primary().execute("CREATE TABLE orders (id int)");
 * postgres.standby().awaitReplay();
 * postgres.standby().freeze();   // every process of it stops; its sockets stay open
 * ...
 * postgres.heal();
 * }</pre>
 *
 * <p>The programs come with a Maven artifact (linux-amd64; other machines add theirs of {@code
 * io.zonky.test.postgres} to the class path, or fall back to an installed server), so nothing has
 * to be installed, and root may start it too. Data is not synced to disk: it survives {@link
 * PostgresServer#kill()}, not a power cut. Nothing is left when it is closed, or when the JVM ends.
 *
 * <p>All methods may be called from any thread and block; none belongs on an event loop.
 */
public final class PostgresReplicaSet implements AutoCloseable {
  /** The most standbys that a set may have: {@value}. */
  public static final int MAX_STANDBYS = 8;

  private final PostgresBinaries binaries;
  private final PostgresCluster cluster;
  private final boolean shared;
  private final PostgresServer primary;
  private final List<PostgresServer> standbys = new ArrayList<>();
  private final AutoCloseable running = this::stop;
  private boolean closed;

  private PostgresReplicaSet(Builder settings, boolean shared) {
    this.binaries = settings.binaries.get();
    this.shared = shared;
    PostgresHome home = PostgresHome.ofThisJvm();
    try {
      this.cluster =
          new PostgresCluster(
              binaries, home.register(running), Map.copyOf(settings.settings), settings.tls);
      this.primary = server("primary");
    } catch (IOException e) {
      throw new UncheckedIOException("no directory for Postgres", e);
    }
    try {
      cluster.initialise(primary);
      primary.process().start();
      for (int i = 1; i <= settings.standbys; i++) {
        addStandby();
      }
    } catch (RuntimeException | Error e) {
      stop();
      throw e;
    }
  }

  /** A set of its own with one standby; it takes about 2 s. */
  public static PostgresReplicaSet start() {
    return builder().start();
  }

  /** To choose the programs, the standbys, TLS and settings. */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * The set that all tests of this JVM share: started at the first call, stopped when the JVM ends,
   * with {@link Builder#tls() TLS} for those who ask for it. {@link #close()} on it does nothing,
   * so that no test takes it from the others; keep tests apart by tables and application names, and
   * undo faults with {@link #heal()}.
   *
   * <p>The system property {@code timebound.test.postgres} chooses its programs: {@code installed},
   * or the directory of a {@code postgres}.
   */
  public static PostgresReplicaSet shared() {
    return Shared.SET;
  }

  /** The primary. It stays the one it was when a standby is promoted. */
  public PostgresServer primary() {
    return primary;
  }

  /** The first standby. */
  public PostgresServer standby() {
    return standby(1);
  }

  /**
   * The standby of that number, from 1. One that there is not yet is made, from a base backup of
   * the primary, with all before it: about half a second each.
   *
   * @param number from 1 to {@value #MAX_STANDBYS}
   */
  public synchronized PostgresServer standby(int number) {
    if (number < 1 || number > MAX_STANDBYS) {
      throw new IllegalArgumentException(
          "standby: " + number + " (expected: from 1 to " + MAX_STANDBYS + ")");
    }
    if (closed) {
      throw new IllegalStateException("the replica set is closed");
    }
    while (standbys.size() < number) {
      addStandby();
    }
    return standbys.get(number - 1);
  }

  /** The standbys that there are, in the order of their numbers. */
  public synchronized List<PostgresServer> standbys() {
    return List.copyOf(standbys);
  }

  /**
   * Waits until every standby has replayed what the primary had written when this was called.
   *
   * @see PostgresServer#awaitReplay()
   */
  public void awaitReplay() {
    standbys().forEach(PostgresServer::awaitReplay);
  }

  /**
   * Undoes every fault: thaws, starts what was killed or stopped, resumes replay, makes a standby
   * that was promoted anew from the primary (what was written to it is lost), and waits until the
   * standbys have caught up. Where no fault was made it does nothing.
   */
  public synchronized void heal() {
    List<PostgresServer> all = new ArrayList<>(standbys);
    all.add(0, primary);
    if (closed || all.stream().noneMatch(PostgresServer::isFaulty)) {
      return;
    }
    for (PostgresServer server : all) {
      server.thaw();
      if (!server.isRunning()) {
        server.restart();
      }
    }
    for (PostgresServer standby : standbys) {
      if (standby.isStandby()) {
        standby.resumeReplay();
      } else {
        standby.stop();
        cluster.cloneFrom(primary, standby);
        standby.restart();
      }
    }
    awaitReplay();
    all.forEach(PostgresServer::isHealed);
  }

  /**
   * The certificate that the servers show where {@link Builder#tls()} was asked for, for a client
   * to trust: PEM, self-signed, for {@code localhost} and {@code 127.0.0.1}. Its key is public.
   */
  public Path certificate() {
    return cluster.certificate();
  }

  /**
   * Stops all servers and deletes their data. Closing twice, or closing the shared one, does
   * nothing.
   */
  @Override
  public void close() {
    if (!shared) {
      stop();
    }
  }

  @Override
  public String toString() {
    return "PostgresReplicaSet " + primary + " " + standbys();
  }

  private synchronized void stop() {
    if (closed) {
      return;
    }
    closed = true;
    List<PostgresServer> all = new ArrayList<>(standbys);
    all.add(primary);
    all.forEach(PostgresServer::closeQueries);
    // all at once: each takes a moment
    all.forEach(server -> server.process().askToEnd());
    all.forEach(server -> server.process().close());
    PostgresHome.delete(cluster.directory());
    PostgresHome.ofThisJvm().unregister(running);
  }

  private void addStandby() {
    PostgresServer standby = server("standby-" + (standbys.size() + 1));
    cluster.cloneFrom(primary, standby);
    standby.process().start();
    standbys.add(standby);
    standby.awaitReplay();
  }

  private PostgresServer server(String name) {
    return new PostgresServer(
        this,
        name,
        freePort(),
        new PostgresProcess(binaries, cluster.data(name), cluster.log(name)));
  }

  private static int freePort() {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName(PostgresServer.HOST))) {
      return socket.getLocalPort();
    } catch (IOException e) {
      throw new UncheckedIOException("no free port", e);
    }
  }

  private static final class Shared {
    static final PostgresReplicaSet SET = start();

    private static PostgresReplicaSet start() {
      Builder builder = builder().tls();
      String programs = System.getProperty("timebound.test.postgres", "");
      if (programs.equals("installed")) {
        builder.installed();
      } else if (!programs.isEmpty()) {
        builder.binaries(Path.of(programs));
      }
      return new PostgresReplicaSet(builder, true);
    }
  }

  /** Settings of a {@link PostgresReplicaSet}. */
  public static final class Builder {
    private Supplier<PostgresBinaries> binaries = PostgresBinaries::embedded;
    private int standbys = 1;
    private boolean tls;
    private final Map<String, String> settings = new LinkedHashMap<>();

    private Builder() {}

    /**
     * Runs the server that is installed on this machine (15 or later), found by {@code postgres} on
     * the PATH, else in {@code /usr/lib/postgresql/}; the default is the one that comes with Maven.
     */
    public Builder installed() {
      binaries = PostgresBinaries::installed;
      return this;
    }

    /** Runs the {@code postgres} of that directory, 15 or later. */
    public Builder binaries(Path bin) {
      binaries = () -> PostgresBinaries.in(bin);
      return this;
    }

    /** How many standbys are there from the start; the default is 1. */
    public Builder standbys(int count) {
      if (count < 0 || count > MAX_STANDBYS) {
        throw new IllegalArgumentException(
            "standbys: " + count + " (expected: from 0 to " + MAX_STANDBYS + ")");
      }
      standbys = count;
      return this;
    }

    /**
     * Lets clients connect over TLS; the default is without. The certificate is {@link
     * PostgresReplicaSet#certificate()}. Clients that ask for none still get through.
     */
    public Builder tls() {
      tls = true;
      return this;
    }

    /**
     * A setting of all servers, as in {@code postgresql.conf}: {@code
     * setting("max_standby_streaming_delay", "100ms")}. The kit's own are few and can be
     * overridden, save those without which it cannot find its servers (port, listen_addresses).
     */
    public Builder setting(String name, String value) {
      if (!name.matches("[a-z_.]+") || name.equals("port") || name.equals("listen_addresses")) {
        throw new IllegalArgumentException(
            "setting: " + name + " (expected: a setting's name, not port or listen_addresses)");
      }
      settings.put(name, value);
      return this;
    }

    /**
     * Starts it: about 2 s with one standby.
     *
     * @throws IllegalStateException where a server does not come up; the message has its log
     */
    public PostgresReplicaSet start() {
      return new PostgresReplicaSet(this, false);
    }
  }
}
