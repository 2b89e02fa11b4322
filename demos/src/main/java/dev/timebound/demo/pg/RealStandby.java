package dev.timebound.demo.pg;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresServer;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The first standby of real servers. */
final class RealStandby implements Standby {
  private static final String OLD =
      "SELECT count(*) FILTER (WHERE state LIKE 'idle in transaction%') AS idle,"
          + " count(*) FILTER (WHERE state = 'active') AS running FROM pg_stat_activity"
          + " WHERE backend_type = 'client backend' AND application_name = ?"
          + " AND CASE WHEN state = 'active' THEN query_start ELSE xact_start END"
          + " < clock_timestamp() - interval '500 milliseconds'";

  private final PostgresReplicaSet servers;
  private final String application;

  /**
   * @param application what the client's sessions are called
   */
  RealStandby(PostgresReplicaSet servers, String application) {
    this.servers = servers;
    this.application = application;
  }

  @Override
  public void freeze() {
    servers.standby().freeze();
  }

  @Override
  public void thaw() {
    servers.standby().thaw();
  }

  @Override
  public void pauseReplay() {
    servers.standby().pauseReplay();
  }

  @Override
  public void resumeReplay() {
    servers.standby().resumeReplay();
  }

  @Override
  public void kill() {
    servers.standby().kill();
  }

  @Override
  public void restart() {
    servers.standby().restart();
  }

  @Override
  public Leftovers leftovers() {
    long idle = 0;
    long running = 0;
    for (PostgresServer server : List.of(servers.primary(), servers.standby())) {
      Map<String, @Nullable Object> row = server.query(OLD, application).get(0);
      idle += count(row, "idle");
      running += count(row, "running");
    }
    return new Leftovers(idle, running);
  }

  private static long count(Map<String, @Nullable Object> row, String label) {
    return row.get(label) instanceof Number number ? number.longValue() : 0;
  }
}
