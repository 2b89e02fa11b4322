package dev.timebound.pg;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Moves the row by which a replica shows how far behind it is: the writer's time and position at
 * the last move. Any number of processes may run it; the row moves once an interval. (PG-20)
 */
final class Heartbeat {
  private static final Logger log = LoggerFactory.getLogger(Heartbeat.class);

  /** What {@link RoutedDatabase#createHeartbeat} executes. */
  static final String CREATE =
      "CREATE TABLE IF NOT EXISTS "
          + ProofSql.HEARTBEAT
          + " (id smallint PRIMARY KEY CHECK (id = 1), moved_at timestamptz NOT NULL, lsn pg_lsn"
          + " NOT NULL)";

  private final ConnectionFactory writer;
  private final Duration interval;
  private final PgSettings settings;
  private volatile Disposable running = Disposables.disposed();
  private volatile boolean failing;

  Heartbeat(ConnectionFactory writer, Duration interval, PgSettings settings) {
    this.writer = writer;
    this.interval = interval;
    this.settings = settings;
  }

  void start() {
    running =
        Flux.interval(Duration.ZERO, interval, settings.scheduler())
            // a move that takes longer than the interval: the next one is left out
            .onBackpressureDrop()
            .concatMap(tick -> moved(), 1)
            .subscribe();
  }

  void stop() {
    running.dispose();
  }

  /** One move; its errors are told of once until it succeeds again. */
  private Mono<Void> moved() {
    return execute(writer, move())
        .timeout(interval.multipliedBy(10), settings.scheduler())
        .doOnSuccess(done -> told(null))
        .onErrorResume(
            e -> {
              told(e);
              return Mono.empty();
            });
  }

  private void told(@Nullable Throwable e) {
    if (e == null) {
      if (failing) {
        failing = false;
        log.info("pg heartbeat: moves again");
      }
    } else if (!failing) {
      failing = true;
      log.warn(
          "pg heartbeat: cannot be moved, reads with a staleness go to the writer: {}", "" + e);
    }
  }

  /** The position is taken before the move's own commit: what shows the row shows all up to it. */
  private String move() {
    return "INSERT INTO "
        + ProofSql.HEARTBEAT
        + " AS h VALUES (1, clock_timestamp(), pg_current_wal_insert_lsn()) ON CONFLICT (id) DO UPDATE"
        + " SET moved_at = clock_timestamp(), lsn = pg_current_wal_insert_lsn()"
        + " WHERE h.moved_at <= clock_timestamp() - interval '"
        + interval.toMillis() / 2
        + " milliseconds'";
  }

  static Mono<Void> execute(ConnectionFactory writer, String sql) {
    return Mono.usingWhen(
        Mono.<Connection>from(writer.create()),
        c -> Flux.from(c.createStatement(sql).execute()).flatMap(r -> r.getRowsUpdated()).then(),
        Connection::close);
  }
}
