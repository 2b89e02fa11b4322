package dev.timebound.pg;

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

  private final Router router;
  private final Duration interval;
  private volatile Disposable running = Disposables.disposed();
  private volatile boolean failing;

  Heartbeat(Router router, Duration interval) {
    this.router = router;
    this.interval = interval;
  }

  void start() {
    running =
        Flux.interval(Duration.ZERO, interval, router.settings().scheduler())
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
    return router
        .ask(move())
        .then()
        .timeout(interval.multipliedBy(10), router.settings().scheduler())
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
          "pg heartbeat: cannot be moved, reads with a staleness go to the writer: {}",
          SqlStates.told(e));
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
}
