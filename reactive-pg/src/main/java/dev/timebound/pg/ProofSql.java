package dev.timebound.pg;

import java.time.Duration;

/**
 * The text of a proof. (PG-10, PG-20)
 *
 * <p>A fence that does not hold divides by zero: that aborts the transaction, so that the user's
 * statement, sent right behind, never runs and nothing of it has to be drained.
 *
 * <p>A position of the log cannot be compared inside the batch: there the snapshot is taken first,
 * and the replay may pass the position after it. So it is compared in a query of its own ahead, and
 * the batch reads that query's verdict from a session setting. A number of the read's own marks it,
 * so that no verdict of an earlier read on the same session counts.
 */
final class ProofSql {
  /** The row that the writer's task moves; the only name that users must know. */
  static final String HEARTBEAT = "timebound_heartbeat";

  /** By its key: an aggregate costs more to plan. */
  private static final String THE_ROW = " WHERE id = 1)";

  /** The least that is observed. */
  static final String ROLE = "SELECT pg_is_in_recovery()";

  private static final String VERDICT = "timebound.fence";

  private ProofSql() {}

  /** As a server takes it: 0 would be none, and past an int it refuses. */
  static long timeout(long millis) {
    return Math.min(Math.max(1, millis), Integer.MAX_VALUE);
  }

  /** Whether the fence's position is compared ahead of the batch, by {@link #position}. */
  static boolean asksPosition(Fence fence, boolean hidesReplayPosition) {
    return fence.lsn() != 0 && !hidesReplayPosition;
  }

  /** Leaves a mark on the session where its position is at or past the fence's. */
  static String position(Fence fence, long number) {
    return "SELECT set_config('"
        + VERDICT
        + "', CASE WHEN "
        + reached(fence)
        + " THEN '"
        + number
        + "' ELSE '' END, false)";
  }

  /** Whether the session's position is at or past the fence's, as a row of one boolean. */
  static String poll(Fence fence, boolean hidesReplayPosition) {
    String position =
        fence.lsn() == 0 ? "true" : hidesReplayPosition ? heartbeatAt(fence) : reached(fence);
    Duration staleness = fence.maxStaleness();
    return "SELECT coalesce("
        + position
        + (staleness == null ? "" : " AND " + heartbeatWithin(staleness))
        + ", false)";
  }

  /**
   * Opens the transaction.
   *
   * @param statementTimeoutMillis 0 for none
   */
  static String begin(long statementTimeoutMillis) {
    return "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL statement_timeout = "
        + statementTimeoutMillis
        + "; ";
  }

  /**
   * Observes role and freshness in the transaction's snapshot, as a row of one boolean: whether the
   * server is a standby.
   */
  static String observation(Fence fence, long number, boolean hidesReplayPosition) {
    StringBuilder sql = new StringBuilder(ROLE);
    if (fence.lsn() != 0) {
      holds(
          sql,
          hidesReplayPosition
              ? heartbeatAt(fence)
              : "current_setting('" + VERDICT + "', true) = '" + number + "'");
    }
    Duration staleness = fence.maxStaleness();
    if (staleness != null) {
      holds(sql, heartbeatWithin(staleness));
    }
    return sql.toString();
  }

  private static void holds(StringBuilder sql, String condition) {
    sql.append(", 1 / coalesce((").append(condition).append(")::int, 0)");
  }

  /** A server that was promoted has no replay to speak of: all it wrote it shows. */
  private static String reached(Fence fence) {
    return "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()"
        + " ELSE pg_current_wal_insert_lsn() END >= '"
        + Lsn.format(fence.lsn())
        + "'::pg_lsn";
  }

  /**
   * The row holds the writer's position from before its own commit: what shows it shows all that.
   */
  private static String heartbeatAt(Fence fence) {
    return "(SELECT lsn >= '" + Lsn.format(fence.lsn()) + "'::pg_lsn FROM " + HEARTBEAT + THE_ROW;
  }

  /** A row from the future shows a clock that is behind, by which all would seem fresh. */
  private static String heartbeatWithin(Duration staleness) {
    String limit = "interval '" + staleness.toNanos() / 1_000 + " microseconds'";
    return "(SELECT moved_at BETWEEN clock_timestamp() - "
        + limit
        + " AND clock_timestamp() + "
        + limit
        + " FROM "
        + HEARTBEAT
        + THE_ROW;
  }
}
