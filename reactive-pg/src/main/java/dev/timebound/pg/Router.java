package dev.timebound.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.Claim;
import dev.timebound.health.FailHandle;
import dev.timebound.health.HealthGroup;
import io.r2dbc.spi.Connection;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.util.context.ContextView;

/** Where reads go: readers by their health and load, the writer behind them. */
final class Router {
  private static final Logger log = LoggerFactory.getLogger(RoutedDatabase.class);

  private static final String POSITION =
      "SELECT (CASE WHEN current_setting('synchronous_commit') = 'off' THEN"
          + " pg_current_wal_insert_lsn() ELSE pg_current_wal_lsn() END)::text";

  private final HealthGroup<Reader> readers;
  private final WriterGate writer;
  private final PgSettings settings;
  private final PgMeters meters;
  private final AtomicLong reads = new AtomicLong();
  private volatile boolean closed;
  private final Sinks.Many<ReaderPromoted> promotions = Sinks.many().multicast().directBestEffort();

  Router(HealthGroup<Reader> readers, WriterGate writer, PgSettings settings, PgMeters meters) {
    this.readers = readers;
    this.writer = writer;
    this.settings = settings;
    this.meters = meters;
  }

  PgSettings settings() {
    return settings;
  }

  WriterGate writer() {
    return writer;
  }

  /** Tells the proofs of one session apart. */
  long nextNumber() {
    return reads.incrementAndGet();
  }

  /** The least loaded reader in service; a refusal where there is none. (PG-30) */
  Checkout checkout(FailHandle quarantined) {
    Claim<Reader> claim = readers.pick(r -> false, quarantined);
    if (claim == null) {
      throw readers.members().isEmpty()
          ? new RefusedException(RouteReason.NO_READER, "no reader is configured", null)
          : new RefusedException(RouteReason.READER_QUARANTINED, "every reader is out", null);
    }
    return new Checkout(claim);
  }

  void routed(RouteTarget target, RouteReason reason) {
    meters.routed(target, reason);
  }

  /** The caller's deadline, or the default bound of a read. (PG-13) */
  Deadline deadline(ContextView context) {
    Deadline current = Deadlines.current(context);
    return current.isNone()
        ? Deadline.after(settings.defaultReadTimeout(), settings.scheduler())
        : current;
  }

  /** An error where the writer is a standby. (PG-14a) */
  static Mono<Void> writerRole(Connection c, @Nullable Throwable cause) {
    return Proof.answer(c, "SELECT pg_is_in_recovery()")
        .flatMap(standby -> standby ? Mono.error(new WriterRoleException(cause)) : Mono.empty());
  }

  /** An error of the writer's: told as its role's where the writer is a standby. (PG-14a) */
  static <T> Mono<T> writerFailed(Connection c, Throwable e) {
    return writerRole(c, e)
        .onErrorMap(other -> other instanceof WriterRoleException ? other : e)
        .then(Mono.error(e));
  }

  /**
   * One statement of this module's own on the writer, outside of a transaction, each row as text of
   * its first column; not counted as a route. Given up, it is cancelled on the server.
   */
  Flux<String> ask(String sql) {
    return Flux.usingWhen(
            Mono.fromSupplier(
                () -> {
                  open();
                  return new WriterSession(this, () -> {});
                }),
            session ->
                Flux.from(new RecordedStatement(sql, session::execute).execute())
                    .concatMap(result -> result.map(row -> row.get(0, String.class))),
            WriterSession::close)
        .contextWrite(ReadYourWrites::without);
  }

  /** How far the log must be replayed for all that has committed by now. */
  Mono<Long> position() {
    return ask(POSITION).last().map(Lsn::parse);
  }

  /**
   * How far the log must be replayed for all that has committed on that connection. A commit that
   * does not wait for the disk may be past what has been written.
   */
  static Mono<Long> position(Connection c) {
    return Flux.from(c.createStatement(POSITION).execute())
        .concatMap(result -> result.map((row, metadata) -> row.get(0, String.class)))
        .last()
        .map(Lsn::parse);
  }

  /** Tells the scope, if there is one, what has committed on that connection. (PG-21) */
  Mono<Void> settle(Connection c, ReadYourWrites.@Nullable Scope scope) {
    return scope == null
        ? Mono.empty()
        : position(c)
            .timeout(settings.proofTimeout(), settings.scheduler())
            .doOnNext(scope::settled)
            .then();
  }

  /** A reader that is no standby any more still serves; it is told of once. (PG-14a) */
  void roleSeen(Reader reader, boolean standby) {
    if (reader.roleSeen(standby)) {
      log.warn(
          "pg reader {} is not in recovery: it was promoted, and still serves reads",
          reader.name());
      meters.promoted(reader.name());
      Instant now = Instant.ofEpochMilli(settings.scheduler().now(TimeUnit.MILLISECONDS));
      // of two proofs that see it at one moment only one comes here; a listener too slow loses it
      promotions.tryEmitNext(new ReaderPromoted(reader.name(), now));
    }
  }

  Flux<ReaderPromoted> promotions() {
    return promotions.asFlux().publishOn(settings.scheduler());
  }

  /**
   * @throws IllegalStateException where the database was closed
   */
  void open() {
    if (closed) {
      throw new IllegalStateException("RoutedDatabase: closed (expected: open)");
    }
  }

  void close() {
    closed = true;
    promotions.tryEmitComplete();
  }

  /**
   * What a proof failed by that says nothing of the connection, a missing heartbeat table say. Each
   * read may meet it: told once a minute.
   */
  void unproved(Reader reader, Throwable e) {
    if (reader.mayTell(settings.scheduler().now(TimeUnit.SECONDS))) {
      log.warn("pg reader {} could not prove itself: {}", reader.name(), SqlStates.told(e));
    }
  }
}
