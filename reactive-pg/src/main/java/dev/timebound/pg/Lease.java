package dev.timebound.pg;

import io.r2dbc.postgresql.api.PostgresqlConnection;
import io.r2dbc.postgresql.api.PostgresqlResult;
import java.time.Duration;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Mono;
import reactor.pool.PooledRef;

/**
 * A checked-out connection. The first of release, cancelled, drop and abandon wins, the rest do
 * nothing; each returns at once, and what follows runs detached. All methods may be called from any
 * thread.
 */
final class Lease {
  private static final int UNTOUCHED = 0;
  private static final int TOUCHED = 1;
  private static final int GIVEN_BACK = 2;

  private final PooledRef<ReaderConnection> ref;
  private final ReaderConnection connection;
  private final PgSettings settings;
  private final ReaderPool pool;

  private final AtomicInteger use = new AtomicInteger(UNTOUCHED);
  private final AtomicBoolean ended = new AtomicBoolean();
  private volatile boolean began;
  private volatile boolean proved;

  Lease(PooledRef<ReaderConnection> ref, PgSettings settings, ReaderPool pool) {
    this.ref = ref;
    this.connection = ref.poolable();
    this.settings = settings;
    this.pool = pool;
    connection.lent();
  }

  /**
   * @throws IllegalStateException where it went back before anyone asked for it
   */
  ReaderConnection connection() {
    if (use.get() != TOUCHED && !use.compareAndSet(UNTOUCHED, TOUCHED) && use.get() == GIVEN_BACK) {
      throw new IllegalStateException("the connection has gone back to its pool");
    }
    return connection;
  }

  /** As {@link #connection()}, the driver's. */
  PostgresqlConnection driver() {
    return connection().driver();
  }

  /**
   * A BEGIN has been sent: the release check is a ROLLBACK from now on. Before it the check is a
   * trivial round trip, and there is none where nobody has touched the connection.
   */
  void began() {
    began = true;
  }

  /** Its BEGIN has been answered: from now on it is in a transaction until it is given back. */
  void proved() {
    proved = true;
  }

  /**
   * The read ended by itself. The connection goes back once it passes the release check. (PG-15)
   */
  void release() {
    if (ends()) {
      if (proved && connection.driver().isAutoCommit()) {
        // the read's own SQL ended the transaction: what it set outlives a ROLLBACK, and nobody
        // knows what that was
        close(CloseReason.OPEN_TRANSACTION);
        return;
      }
      check(settings.releaseTimeout())
          .subscribe(
              null,
              failed ->
                  close(
                      failed instanceof TimeoutException ? CloseReason.TIMEOUT : CloseReason.ERROR),
              this::checked);
    }
  }

  /**
   * The caller left, or its deadline passed, while a statement may run. Where that ends by itself
   * within the grace time the connection goes back as in {@link #release()}; else the server is
   * told to cancel it, and the connection is closed: a cancel request may arrive late, and would
   * hit whoever has the connection by then. (PG-19)
   */
  void cancelled() {
    if (ends()) {
      check(settings.cancelGrace())
          .subscribe(
              null,
              failed -> {
                if (failed instanceof TimeoutException) {
                  pool.closed(CloseReason.CANCELLED);
                  connection.cancelAndClose();
                  // the slot is free while the request is under way
                  invalidate();
                } else {
                  close(CloseReason.ERROR);
                }
              },
              this::checked);
    }
  }

  /** The connection's socket is closed at once and its slot is free. */
  void drop(CloseReason reason) {
    if (ended.compareAndSet(false, true)) {
      close(reason);
    }
  }

  /** Gives it back if nobody has touched it; else does nothing. */
  void releaseUntouched() {
    if (use.compareAndSet(UNTOUCHED, GIVEN_BACK) && ended.compareAndSet(false, true)) {
      giveBack();
    }
  }

  boolean isEnded() {
    return ended.get();
  }

  /** Whether this call ended it and there is something to check. */
  private boolean ends() {
    if (!ended.compareAndSet(false, true)) {
      return false;
    }
    if (use.compareAndSet(UNTOUCHED, GIVEN_BACK)) {
      giveBack();
      return false;
    }
    return true;
  }

  /** Queued behind whatever runs: its completion shows that the session is alive, and at an end. */
  private Mono<Void> check(Duration bound) {
    return Mono.defer(
            () ->
                connection
                    .driver()
                    // never rollbackTransaction(): it looks at the last status seen, and skips
                    .createStatement(began ? "ROLLBACK" : "SELECT 1")
                    .execute()
                    .flatMap(PostgresqlResult::getRowsUpdated)
                    .then())
        .timeout(bound, settings.scheduler())
        .contextWrite(callers -> Quiet.CONTEXT);
  }

  private void checked() {
    // known only now: before the ROLLBACK was answered the status was that of an earlier statement
    if (connection.driver().isAutoCommit()) {
      giveBack();
    } else {
      close(CloseReason.OPEN_TRANSACTION);
    }
  }

  private void giveBack() {
    connection.returned();
    ref.release().subscribe();
  }

  private void close(CloseReason reason) {
    pool.closed(reason);
    connection.closeNow();
    invalidate();
  }

  private void invalidate() {
    pool.slots().free(connection);
    ref.invalidate().subscribe();
  }
}
