package dev.timebound.test;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One server of a {@link PostgresReplicaSet}: where it is, what its sessions do, and its faults.
 *
 * <p>Faults are made on real processes and last until they are undone here or by {@link
 * PostgresReplicaSet#heal()}. All methods may be called from any thread and block; none belongs on
 * an event loop. A statement that the server refuses is an IllegalStateException with the driver's
 * {@link SQLException} as its cause; so is any look into a server that is frozen or not running.
 */
public final class PostgresServer {
  static final String HOST = "127.0.0.1";
  static final String USER = "postgres";
  static final String DATABASE = "postgres";

  private static final String SESSIONS =
      "SELECT pid, application_name, coalesce(state, '') AS state,"
          + " coalesce(wait_event, '') AS wait_event, query, coalesce(client_port, -1) AS port"
          + " FROM pg_stat_activity WHERE backend_type = 'client backend'"
          + " AND application_name <> '"
          + PostgresQueries.APPLICATION
          + "' ORDER BY pid";

  private final PostgresReplicaSet set;
  private final String name;
  private final int port;
  private final PostgresProcess process;
  private final PostgresQueries queries;
  private boolean faulty;

  PostgresServer(PostgresReplicaSet set, String name, int port, PostgresProcess process) {
    this.set = set;
    this.name = name;
    this.port = port;
    this.process = process;
    this.queries = new PostgresQueries("jdbc:postgresql://" + hostAndPort() + "/" + DATABASE);
  }

  // ---- where it is

  /** {@code primary}, {@code standby-1}, {@code standby-2} …; it keeps its name when promoted. */
  public String name() {
    return name;
  }

  /** The address it listens on: {@code 127.0.0.1}. */
  public String host() {
    return HOST;
  }

  /** Its port, the same over restarts. */
  public int port() {
    return port;
  }

  /** {@code 127.0.0.1:port}. */
  public String hostAndPort() {
    return HOST + ":" + port;
  }

  /** The user to log in as, a superuser; no password is asked for. */
  public String user() {
    return USER;
  }

  /** The database to log in to. */
  public String database() {
    return DATABASE;
  }

  /** A URL for JDBC, with the user. */
  public String jdbcUrl() {
    return "jdbc:postgresql://" + hostAndPort() + "/" + DATABASE + "?user=" + USER;
  }

  /** A URL for R2DBC, with the user. */
  public String r2dbcUrl() {
    return "r2dbc:postgresql://" + USER + "@" + hostAndPort() + "/" + DATABASE;
  }

  /** A new {@link FaultProxy} in front of it, for the caller to close. */
  public FaultProxy proxy() {
    return FaultProxy.to(HOST, port);
  }

  // ---- faults

  /**
   * Stops every process of the server where it stands (SIGSTOP): sockets stay open, new connections
   * are taken by the kernel, and nothing is answered. When this returns all have stopped. Freezing
   * a frozen one does nothing.
   *
   * @throws IllegalStateException where it is not running
   */
  public synchronized void freeze() {
    if (!process.isFrozen()) {
      faulty = true;
      process.freeze();
    }
  }

  /** Lets a frozen server go on where it stood (SIGCONT). On another one it does nothing. */
  public synchronized void thaw() {
    if (process.isFrozen()) {
      process.thaw();
    }
  }

  /** Whether it was frozen and not thawed since. */
  public synchronized boolean isFrozen() {
    return process.isFrozen();
  }

  /** Whether it runs, frozen or not. */
  public synchronized boolean isRunning() {
    return process.isRunning();
  }

  /**
   * Kills every process of it (SIGKILL), frozen or not: its clients see their sockets reset or
   * closed, and its port refuses. When this returns all are gone. {@link #restart()} brings it
   * back.
   *
   * @throws IllegalStateException where it is not running
   */
  public synchronized void kill() {
    faulty = true;
    process.kill();
    queries.close();
  }

  /**
   * Stops it in order, as an operator does ("fast"): sessions are told (57P01) and ended, its port
   * refuses. {@link #restart()} brings it back. A frozen one is thawed for it.
   *
   * @throws IllegalStateException where it is not running
   */
  public synchronized void stop() {
    faulty = true;
    process.stop();
    queries.close();
  }

  /**
   * Starts it, on the same port and data; stops it in order first where it runs. When this returns
   * it takes connections.
   */
  public synchronized void restart() {
    if (process.isRunning()) {
      stop();
    }
    process.start();
  }

  /**
   * Makes a standby take in no more of what the primary writes, so that it falls behind; reads go
   * on. When this returns it has paused.
   *
   * @throws IllegalStateException where it is no standby
   */
  public void pauseReplay() {
    mustBeStandby();
    synchronized (this) {
      faulty = true;
    }
    execute("SELECT pg_wal_replay_pause()");
    Await.until(
        "replay is paused",
        () -> value("SELECT pg_get_wal_replay_pause_state()").equals("paused"),
        () -> "it is " + value("SELECT pg_get_wal_replay_pause_state()"));
  }

  /**
   * Ends {@link #pauseReplay()}; it catches up from then on ({@link #awaitReplay()} waits for it).
   *
   * @throws IllegalStateException where it is no standby
   */
  public void resumeReplay() {
    mustBeStandby();
    execute("SELECT pg_wal_replay_resume()");
  }

  /**
   * Makes a standby a primary of its own, apart from the one that was. When this returns it takes
   * writes. Only {@link PostgresReplicaSet#heal()} undoes it.
   *
   * @throws IllegalStateException where it is no standby
   */
  public void promote() {
    mustBeStandby();
    synchronized (this) {
      faulty = true;
    }
    if (!value("SELECT pg_promote(true, 60)").equals("t")) {
      throw new IllegalStateException(name + " was not promoted within 60 s");
    }
  }

  // ---- what can be seen

  /** Whether it is in recovery: a standby that was not promoted. */
  public boolean isStandby() {
    return value("SELECT pg_is_in_recovery()").equals("t");
  }

  /**
   * Up to where its WAL goes: what it has flushed, or what it has replayed where it is a standby;
   * {@code 0/3000148}, say.
   */
  public String walPosition() {
    return value(
        "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()"
            + " ELSE pg_current_wal_flush_lsn() END");
  }

  /**
   * Waits until this standby has replayed all that the primary had written when this was called; at
   * most 30 s.
   *
   * @throws IllegalStateException where it is no standby, or its replay is paused
   * @throws AssertionError where it does not get there
   */
  public void awaitReplay() {
    mustBeStandby();
    if (!value("SELECT pg_get_wal_replay_pause_state()").equals("not paused")) {
      throw new IllegalStateException("replay of " + name + " is paused");
    }
    String written = set.primary().walPosition();
    Await.until(
        name + " has replayed up to " + written,
        () -> value("SELECT pg_last_wal_replay_lsn() >= ?::text::pg_lsn", written).equals("t"),
        () -> "it is at " + walPosition());
  }

  /**
   * Runs a query on a session of the kit's own, in autocommit, and returns its rows: column label
   * to value as JDBC gives it.
   *
   * @param arguments for {@code ?} in the query
   */
  public List<Map<String, @Nullable Object>> query(String sql, @Nullable Object... arguments) {
    mustAnswer();
    return queries.query(sql, arguments);
  }

  /**
   * As {@link #query}, for a query of one row and column: its value as text ({@code t} or {@code f}
   * of a boolean), empty for NULL.
   *
   * @throws IllegalStateException where there is no row, or there are more
   */
  public String value(String sql, @Nullable Object... arguments) {
    List<Map<String, @Nullable Object>> rows = query(sql, arguments);
    if (rows.size() != 1 || rows.get(0).size() != 1) {
      throw new IllegalStateException(sql + " gave " + rows + " (expected: one value)");
    }
    Object value = rows.get(0).values().iterator().next();
    return value instanceof Boolean flag ? (flag ? "t" : "f") : value == null ? "" : value + "";
  }

  /**
   * Runs a statement as {@link #query} does, and returns how many rows it changed; 0 for one that
   * changes none.
   */
  public int execute(String sql, @Nullable Object... arguments) {
    mustAnswer();
    return queries.execute(sql, arguments);
  }

  /** A JDBC connection for the caller, who closes it: to hold a lock, say. */
  public Connection connect() {
    return connect("timebound-test");
  }

  /** As {@link #connect()}, under this application name. */
  public Connection connect(String applicationName) {
    mustAnswer();
    try {
      return queries.connect(applicationName);
    } catch (SQLException e) {
      throw new IllegalStateException("no connection to " + name + ": " + e.getMessage(), e);
    }
  }

  /**
   * The sessions of clients that are open now; the kit's own and the server's are not among them.
   */
  public List<PostgresSession> sessions() {
    return query(SESSIONS).stream()
        .map(
            row ->
                new PostgresSession(
                    (Integer) column(row, "pid"),
                    (String) column(row, "application_name"),
                    (String) column(row, "state"),
                    (String) column(row, "wait_event"),
                    (String) column(row, "query"),
                    (Integer) column(row, "port")))
        .toList();
  }

  /** Those of {@link #sessions()} that call themselves so. */
  public List<PostgresSession> sessions(String applicationName) {
    return sessions().stream()
        .filter(session -> session.applicationName().equals(applicationName))
        .toList();
  }

  /**
   * What it has logged since it was first started, a line each. Connections and disconnections are
   * logged. It can be read of a frozen or killed one too. To look only at what is new, remember the
   * size.
   */
  public List<String> log() {
    return process.logLines();
  }

  @Override
  public String toString() {
    return name + " " + hostAndPort();
  }

  // ---- inside

  PostgresProcess process() {
    return process;
  }

  void closeQueries() {
    queries.close();
  }

  /** Whether a fault was made since the last healing. */
  synchronized boolean isFaulty() {
    return faulty;
  }

  synchronized void isHealed() {
    faulty = false;
  }

  private static Object column(Map<String, @Nullable Object> row, String label) {
    Object value = row.get(label);
    if (value == null) {
      throw new IllegalStateException("no " + label + " in " + row);
    }
    return value;
  }

  private void mustBeStandby() {
    if (!isStandby()) {
      throw new IllegalStateException(name + " is no standby");
    }
  }

  private synchronized void mustAnswer() {
    if (!process.isRunning()) {
      throw new IllegalStateException(name + " is not running");
    }
    if (process.isFrozen()) {
      throw new IllegalStateException(name + " is frozen: it cannot answer");
    }
  }
}
