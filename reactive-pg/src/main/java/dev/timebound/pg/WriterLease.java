package dev.timebound.pg;

import io.r2dbc.postgresql.api.PostgresqlConnection;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Wrapped;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;

/**
 * A routed read's hold on the writer: a connection, and one of the places that routed reads may
 * take (PG-32). Given back once; what that takes runs detached.
 */
final class WriterLease {
  private static final Logger log = LoggerFactory.getLogger(RoutedDatabase.class);

  private final Connection connection;
  private final Runnable place;
  private final PgSettings settings;

  private final AtomicBoolean ended = new AtomicBoolean();

  WriterLease(Connection connection, Runnable place, PgSettings settings) {
    this.connection = connection;
    this.place = place;
    this.settings = settings;
  }

  Connection connection() {
    return connection;
  }

  /** The read's transaction is rolled back and the connection goes back to whoever pools it. */
  void release() {
    if (ended.compareAndSet(false, true)) {
      bounded(Proof.rollback(connection), settings.releaseTimeout())
          .onErrorResume(this::broken)
          .then(Mono.defer(this::close))
          .subscribe(null, e -> log.warn("a writer connection could not be closed", e));
    }
  }

  /**
   * The same where a statement may still run: it is cancelled, and its connection not used again.
   */
  void cancelled() {
    cancelled("ROLLBACK", c -> Mono.empty());
  }

  /**
   * The same.
   *
   * @param check sent behind what runs; answered in time it shows that nothing does any more
   * @param last to be done then, before the connection goes back; its errors are not told
   */
  void cancelled(String check, Function<Connection, Mono<Void>> last) {
    if (ended.compareAndSet(false, true)) {
      bounded(Proof.sent(connection, check).then(), settings.cancelGrace())
          .then(Mono.defer(() -> atRest(last)))
          .onErrorResume(this::cancel)
          .then(Mono.defer(this::close))
          .subscribe(null, e -> log.warn("a writer connection could not be closed", e));
    }
  }

  private Mono<Void> atRest(Function<Connection, Mono<Void>> last) {
    // a statement may have begun a transaction by its text
    Mono<Void> rollback =
        connection.isAutoCommit()
            ? Mono.empty()
            : bounded(Proof.rollback(connection), settings.releaseTimeout());
    return rollback
        .then(bounded(Mono.defer(() -> last.apply(connection)), settings.releaseTimeout()))
        .onErrorResume(this::broken);
  }

  private Mono<Void> cancel(Throwable running) {
    PostgresqlConnection driver = driver();
    return driver == null
        ? bounded(Proof.rollback(connection), settings.releaseTimeout()).onErrorResume(this::broken)
        : bounded(driver.cancelRequest(), settings.cancelTimeout())
            .onErrorResume(e -> Mono.empty())
            .then(broken(running));
  }

  /** Closes the session itself: the pool around it finds it dead and replaces it. */
  private Mono<Void> broken(Throwable cause) {
    PostgresqlConnection driver = driver();
    return driver == null
        ? Mono.empty()
        : bounded(driver.close(), settings.closeTimeout()).onErrorResume(e -> Mono.empty());
  }

  private Mono<Void> close() {
    return bounded(Mono.from(connection.close()), settings.closeTimeout())
        .doFinally(s -> place.run());
  }

  private Mono<Void> bounded(Mono<Void> step, Duration limit) {
    return step.timeout(limit, settings.scheduler());
  }

  private @Nullable PostgresqlConnection driver() {
    Object c = connection;
    while (!(c instanceof PostgresqlConnection)) {
      if (!(c instanceof Wrapped<?> wrapped) || wrapped.unwrap() == null) {
        return null;
      }
      c = wrapped.unwrap();
    }
    return (PostgresqlConnection) c;
  }
}
