package dev.timebound.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.util.function.Consumer;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.pool.InstrumentedPool;
import reactor.pool.PoolBuilder;
import reactor.pool.PooledRef;

/**
 * The way to the writer. Routed reads take one of a bounded number of places first, so that however
 * many readers are out, writes find connections. (PG-32)
 */
final class WriterGate {
  private final ConnectionFactory writer;
  private final PgSettings settings;
  private final int places;
  private final InstrumentedPool<Object> spill;

  WriterGate(ConnectionFactory writer, int places, PgSettings settings) {
    this.writer = writer;
    this.settings = settings;
    this.places = places;
    this.spill =
        PoolBuilder.from(Mono.fromSupplier(Object::new)).sizeBetween(0, places).buildPool();
  }

  ConnectionFactory factory() {
    return writer;
  }

  /**
   * A writer connection for a read that no reader serves, as soon as there is a place and a
   * connection; {@link ReaderUnavailableException} where there is none before the deadline, or the
   * writer cannot be reached.
   *
   * @param taken told of what was taken, in the moment it is: a cancel that comes with it loses
   *     nothing
   */
  Mono<WriterLease> forRead(Deadline deadline, RouteReason reason, Consumer<WriterLease> taken) {
    Mono<WriterLease> lease =
        Mono.usingWhen(
            spill.acquire(),
            place -> connect(place, taken),
            // from here on the connection's, when it comes, or its error's
            place -> Mono.empty());
    return Mono.from(Deadlines.<WriterLease>of(deadline, "pg.writer").apply(lease))
        .onErrorMap(e -> unavailable(e, reason));
  }

  /**
   * Not to be cancelled: a pool may lose a connection that comes in that moment, and r2dbc-pool
   * does. One that comes too late goes back at once, and its place with it.
   */
  private Mono<WriterLease> connect(PooledRef<Object> place, Consumer<WriterLease> taken) {
    Sinks.One<WriterLease> lease = Sinks.one();
    Mono.defer(() -> Mono.<Connection>from(writer.create()))
        .map(c -> new WriterLease(c, () -> place.release().subscribe(), settings))
        .doOnNext(taken)
        .subscribe(
            lease::tryEmitValue,
            e -> {
              place.release().subscribe();
              lease.tryEmitError(e);
            });
    return lease.asMono();
  }

  private Throwable unavailable(Throwable e, RouteReason reason) {
    String why =
        e instanceof DeadlineExceededException
            ? "none of its " + places + " places for routed reads, or no connection, came free"
            : String.valueOf(e.getMessage());
    return new ReaderUnavailableException(reason, why, e);
  }

  int taken() {
    return spill.metrics().acquiredSize();
  }

  int waiting() {
    return spill.metrics().pendingAcquireSize();
  }
}
