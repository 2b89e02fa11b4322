package dev.timebound.pg;

import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.api.PostgresqlResult;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Mono;
import reactor.pool.InstrumentedPool;
import reactor.pool.PoolBuilder;
import reactor.pool.PooledRef;

/*
 * The connections to one reader. reactor-pool keeps the idle ones, lends them and queues who waits;
 * what is dialled, and when, is for the slots to say.
 */
final class ReaderPool {
  private static final Duration LAST_RESORT = Duration.ofSeconds(1);

  private final String reader;
  private final PgSettings settings;
  private final PgMeters meters;
  private final Dialler dialler;
  private final Slots slots;
  private final Handover handover;
  private final InstrumentedPool<ReaderConnection> pool;
  private final Mono<Void> closing = Mono.defer(this::shut).cache();

  /**
   * Dials nothing.
   *
   * @param reader its name in meters and log lines
   * @param config where and as whom to connect; asked before each dial. What it sets as {@code
   *     options}, {@code loopResources} and {@code autodetectExtensions} is overridden.
   */
  ReaderPool(
      String reader,
      Supplier<PostgresqlConnectionConfiguration.Builder> config,
      PgSettings settings,
      PgMeters meters) {
    this(reader, config, settings, meters, new SplittableRandom());
  }

  ReaderPool(
      String reader,
      Supplier<PostgresqlConnectionConfiguration.Builder> config,
      PgSettings settings,
      PgMeters meters,
      RandomGenerator random) {
    this.reader = reader;
    this.settings = settings;
    this.meters = meters;
    this.dialler = new Dialler(reader, config, settings);
    this.slots = new Slots(reader, settings, meters, random, dialler, this::take);
    this.handover = new Handover(settings.maxSize());
    this.pool =
        PoolBuilder.from(handover.take())
            .allocationStrategy(handover)
            .maxPendingAcquireUnbounded()
            // what is not needed all the time is to grow old
            .idleResourceReuseMruOrder()
            .evictionPredicate((connection, lending) -> isUseless(connection))
            .evictInBackground(Slots.lookEvery(settings), settings.scheduler())
            .destroyHandler(this::destroyed)
            .buildPool();
    meters.gauge("timebound.pg.pool.idle", reader, this, ReaderPool::idle);
    meters.gauge("timebound.pg.pool.acquired", reader, this, ReaderPool::acquired);
    meters.gauge("timebound.pg.pool.pending", reader, this, ReaderPool::pending);
    meters.gauge("timebound.pg.pool.max", reader, this, any -> settings.maxSize());
  }

  /** Begins to fill the floor, and to keep it, in the background. (PG-1) */
  void start() {
    slots.keepFloor();
  }

  /**
   * A connection, waiting at most {@code min(budget, acquireTimeout)}. The wait is all that this
   * bounds: a dial that it made necessary goes on and joins the pool. (PG-4)
   *
   * <p>A lease that nobody has touched when the subscription is cancelled goes back by itself.
   *
   * @return the lease, or a {@link RefusedException}: READER_ACQUIRE_TIMEOUT, READER_SATURATED or
   *     READER_DIAL_FAILED
   */
  Mono<Lease> acquire(Duration budget) {
    return Waiter.within(budget, settings, this);
  }

  /**
   * Whether a dial has been under way for longer than the acquire timeout: then an acquire timeout
   * speaks of the reader, not of the pool's size. (PG-30)
   */
  boolean dialHangs() {
    return slots.dialHangs();
  }

  /**
   * Asks the reader on a connection of its own, outside the pool's slots: dial, SELECT 1, close.
   * The close is not waited for. A cancel closes its socket at once. (PG-30)
   */
  Mono<Void> probe() {
    return Mono.defer(
        () -> {
          Sockets sockets = dialler.sockets();
          return dialler
              .dial(sockets)
              .flatMap(
                  connection ->
                      connection
                          .driver()
                          .createStatement("SELECT 1")
                          .execute()
                          .flatMap(PostgresqlResult::getRowsUpdated)
                          .then(Mono.<Void>fromRunnable(connection::closeGently))
                          .contextWrite(callers -> Quiet.CONTEXT))
              .doOnError(failed -> sockets.abort())
              .doOnCancel(sockets::abort);
        });
  }

  /** Whether there is a connection, lent or not. */
  boolean hasConnections() {
    return slots.hasConnections();
  }

  /** Connections that wait to be lent. */
  int idle() {
    return slots.idle();
  }

  /** Connections that are lent, those in their release check among them. */
  int acquired() {
    return pool.metrics().acquiredSize();
  }

  /** Reads that wait for a connection. */
  int pending() {
    return slots.waiting();
  }

  /** Slots in use: connections, and dials under way. */
  int allocated() {
    return slots.inUse();
  }

  /**
   * Closes it: who waits is refused, dials end, idle connections are closed, and lent ones when
   * they come back or the close timeout has passed. It completes when no socket is left. Once
   * begun, a cancel does not stop it.
   */
  Mono<Void> close() {
    return closing;
  }

  String name() {
    return reader;
  }

  /** Of connections, dials, probes and cancel requests. */
  int openSockets() {
    return dialler.openSockets();
  }

  // ---- for waiters and leases

  Slots slots() {
    return slots;
  }

  void borrow(Waiter waiter) {
    pool.acquire().subscribe(waiter);
  }

  /** Counts a close in place of a return. (PG-17) */
  void closed(CloseReason reason) {
    meters.closed(reader, reason);
  }

  // ---- for reactor-pool

  private void take(ReaderConnection connection) {
    handover.layDown(connection);
    pool.warmup().subscribe(taken -> {}, impossible -> connection.closeNow());
    connection.taken();
    if (pool.isDisposed()) {
      connection.closeNow();
    } else if (pool.metrics().pendingAcquireSize() > 0) {
      serveNext();
    }
  }

  /** Has the pool look whom it can serve: its warmup does not. */
  private void serveNext() {
    pool.acquire()
        .subscribe(
            new BaseSubscriber<>() {
              @Override
              protected void hookOnSubscribe(Subscription subscription) {
                // behind all who wait; what is lent to one who has left goes back by itself
                request(1);
                cancel();
              }

              @Override
              protected void hookOnNext(PooledRef<ReaderConnection> ref) {
                ref.release().subscribe();
              }

              @Override
              protected void hookOnError(Throwable shutDown) {
                // nobody is left to serve
              }
            });
  }

  private static boolean isUseless(ReaderConnection connection) {
    return !connection.isOpen() || connection.isRetired();
  }

  private Mono<Void> destroyed(ReaderConnection connection) {
    connection.closeGently();
    slots.free(connection);
    return Mono.empty();
  }

  // ---- the end

  private Mono<Void> shut() {
    slots.close();
    return pool.disposeLater()
        .then(
            Mono.defer(dialler::allClosed)
                .timeout(
                    settings.closeTimeout(),
                    Mono.defer(
                        () -> {
                          dialler.closeAll();
                          return dialler.allClosed();
                        }),
                    settings.scheduler())
                // Netty closes what it is told to close; a loop that is blocked may take its time
                .timeout(
                    settings.closeTimeout().plus(LAST_RESORT), Mono.empty(), settings.scheduler()));
  }
}
