package dev.timebound.pg;

import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.api.PostgresqlResult;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Mono;
import reactor.pool.InstrumentedPool;
import reactor.pool.PoolBuilder;
import reactor.pool.PooledRef;

/*
 * The connections to one reader. reactor-pool keeps the idle ones, lends them and queues who waits;
 * what is dialled, and when, is decided here: a dial belongs to the pool and not to the read that
 * made it necessary. So a read that stops waiting abandons none, and one that waits is served by
 * whichever connection is free first.
 *
 * "live" are the connections that count against the maximum, from their dial's success until they
 * are closed, or begin to be closed: a slot is free before the close. Dials under way count too.
 */
final class ReaderPool {
  /** One that lived for less was not worth the dial: the next one for the floor waits a little. */
  private static final long SHORT_LIFE = TimeUnit.SECONDS.toNanos(1);

  private static final Duration LAST_RESORT = Duration.ofSeconds(1);

  private final String reader;
  private final PgSettings settings;
  private final PgMeters meters;
  private final RandomGenerator random;
  private final Dialler dialler;
  private final Handover handover;
  private final InstrumentedPool<ReaderConnection> pool;
  private final Mono<Void> closing = Mono.defer(this::shut).cache();

  // guarded by lock; nothing foreign is called under it
  private final Object lock = new Object();
  private final Set<ReaderConnection> live = new LinkedHashSet<>();
  private final Set<Dial> dials = new LinkedHashSet<>();
  private final Set<Waiter> waiters = new LinkedHashSet<>();
  private final Redial redial;
  private final Disposable.Composite timers = Disposables.composite();
  private boolean keepsFloor;
  private boolean closed;

  ReaderPool(
      String reader,
      Consumer<? super PostgresqlConnectionConfiguration.Builder> config,
      PgSettings settings,
      PgMeters meters) {
    this(reader, config, settings, meters, new SplittableRandom());
  }

  ReaderPool(
      String reader,
      Consumer<? super PostgresqlConnectionConfiguration.Builder> config,
      PgSettings settings,
      PgMeters meters,
      RandomGenerator random) {
    this.reader = reader;
    this.settings = settings;
    this.meters = meters;
    this.random = random;
    this.dialler = new Dialler(reader, config, settings);
    this.handover = new Handover(settings.maxSize());
    this.redial = new Redial(reader);
    this.pool =
        PoolBuilder.from(handover.take())
            .allocationStrategy(handover)
            .maxPendingAcquireUnbounded()
            // what is not needed all the time is to grow old
            .idleResourceReuseMruOrder()
            .evictionPredicate((connection, lending) -> isUseless(connection))
            .evictInBackground(lookEvery(), settings.scheduler())
            .destroyHandler(this::destroyed)
            .buildPool();
    meters.gauge("timebound.pg.pool.idle", reader, this, ReaderPool::idle);
    meters.gauge("timebound.pg.pool.acquired", reader, this, ReaderPool::acquired);
    meters.gauge("timebound.pg.pool.pending", reader, this, ReaderPool::pending);
    meters.gauge("timebound.pg.pool.max", reader, this, any -> settings.maxSize());
  }

  /** Begins to fill the floor, and to keep it, in the background. (PG-1) */
  void start() {
    List<Dial> begun;
    synchronized (lock) {
      if (closed || keepsFloor) {
        return;
      }
      keepsFloor = true;
      long every = lookEvery().toNanos();
      timers.add(
          settings
              .scheduler()
              .schedulePeriodically(this::look, every, every, TimeUnit.NANOSECONDS));
      begun = wanted();
    }
    begun.forEach(Dial::begin);
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
    long bound = settings.acquireTimeout().toNanos();
    long now = now();
    synchronized (lock) {
      for (Dial dial : dials) {
        if (now - dial.since > bound) {
          return true;
        }
      }
      return false;
    }
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
                          .then(Mono.fromRunnable(connection::closeGently)))
              .then()
              .doOnError(failed -> sockets.abort())
              .doOnCancel(sockets::abort);
        });
  }

  /** Connections that wait to be lent. */
  int idle() {
    int count = 0;
    synchronized (lock) {
      for (ReaderConnection connection : live) {
        if (connection.isIdle()) {
          count++;
        }
      }
    }
    return count;
  }

  /** Connections that are lent, those in their release check among them. */
  int acquired() {
    return pool.metrics().acquiredSize();
  }

  /** Reads that wait for a connection. */
  int pending() {
    synchronized (lock) {
      return waiters.size();
    }
  }

  /** Slots in use: connections, and dials under way. */
  int allocated() {
    synchronized (lock) {
      return live.size() + dials.size();
    }
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

  int openSockets() {
    return dialler.openSockets();
  }

  // ---- for waiters and leases

  void borrow(Waiter waiter) {
    pool.acquire().subscribe(waiter);
  }

  /** Queues it, and dials for it where that is allowed; or says why not. (PG-5) */
  @Nullable RouteReason enter(Waiter waiter) {
    List<Dial> begun;
    synchronized (lock) {
      waiters.add(waiter);
      begun = wanted();
      // those that a dial is under way for do not wait for others to finish
      if (waiters.size() - dials.size() > settings.maxPending()) {
        waiters.remove(waiter);
        return RouteReason.READER_SATURATED;
      }
    }
    begun.forEach(Dial::begin);
    return null;
  }

  void leave(Waiter waiter) {
    synchronized (lock) {
      waiters.remove(waiter);
    }
  }

  /** Counts a close in place of a return. (PG-17) */
  void closed(CloseReason reason) {
    meters.closed(reader, reason);
  }

  /** Frees its slot; the floor is filled up again. */
  void forget(ReaderConnection connection) {
    List<Dial> begun;
    synchronized (lock) {
      if (!live.remove(connection)) {
        return;
      }
      begun = wanted();
    }
    begun.forEach(Dial::begin);
  }

  // ---- for reactor-pool

  private boolean isUseless(ReaderConnection connection) {
    return !connection.isOpen() || connection.isRetired();
  }

  private Mono<Void> destroyed(ReaderConnection connection) {
    connection.closeGently();
    forget(connection);
    return Mono.empty();
  }

  // ---- dials

  /**
   * The dials that are wanted now: one for each that waits, and what the floor lacks. The caller,
   * who holds the lock, begins them after it.
   */
  private List<Dial> wanted() {
    if (closed) {
      return List.of();
    }
    List<Dial> begun = List.of();
    int lasting = lasting();
    while (live.size() + dials.size() < settings.maxSize()
        && (dials.size() < waiters.size()
            || keepsFloor && !redial.isWaiting() && lasting + dials.size() < settings.minIdle())) {
      if (begun.isEmpty()) {
        begun = new ArrayList<>();
      }
      Dial dial = new Dial();
      dials.add(dial);
      begun.add(dial);
    }
    return begun;
  }

  /** Connections that are not about to be replaced. */
  private int lasting() {
    int count = 0;
    for (ReaderConnection connection : live) {
      if (!connection.isRetired() && !connection.isExpired()) {
        count++;
      }
    }
    return count;
  }

  private final class Dial {
    final long since = now();
    private final Disposable.Swap running = Disposables.swap();

    void begin() {
      running.update(
          dialler
              .dial(dialler.sockets())
              .subscribe(connection -> arrived(this, connection), cause -> failed(this, cause)));
    }

    void abandon() {
      running.dispose();
    }
  }

  private void arrived(Dial dial, ReaderConnection connection) {
    long lifetime = settings.maxLifetime().toNanos();
    if (lifetime > 0) {
      long shortened = (long) (lifetime * 0.1 * random.nextDouble());
      connection.expiresAt = now() + lifetime - shortened;
    }
    boolean late;
    synchronized (lock) {
      dials.remove(dial);
      late = closed;
      if (!late) {
        live.add(connection);
        redial.succeeded();
      }
    }
    meters.dialled(reader, "ok");
    if (late) {
      connection.closeNow();
      return;
    }
    handover.layDown(connection);
    pool.warmup().subscribe(taken -> {}, impossible -> connection.closeNow());
    if (pool.isDisposed()) {
      connection.closeNow();
      return;
    }
    connection.taken();
    connection.onClosed(() -> lost(connection));
    // warmup serves nobody
    if (pool.metrics().pendingAcquireSize() > 0) {
      serveNext();
    }
  }

  /** Has the pool look whom it can serve. */
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

  private void failed(Dial dial, Throwable cause) {
    List<Waiter> refused = new ArrayList<>();
    synchronized (lock) {
      dials.remove(dial);
      if (closed) {
        return;
      }
      if (waiters.size() > dials.size()) {
        // with nothing to hope for all are told at once: a dial each would end the same
        boolean hopeless = dials.isEmpty() && live.isEmpty();
        for (Waiter waiter : waiters) {
          refused.add(waiter);
          if (!hopeless) {
            break;
          }
        }
        refused.forEach(waiters::remove);
      }
      waitBeforeRedial(cause);
    }
    meters.dialled(reader, cause instanceof TimeoutException ? "timeout" : "failed");
    refused.forEach(waiter -> waiter.fail(RouteReason.READER_DIAL_FAILED, "dial failed", cause));
  }

  /** Its socket closed, whoever did it. */
  private void lost(ReaderConnection connection) {
    List<Dial> begun;
    synchronized (lock) {
      if (!live.remove(connection) || closed) {
        return;
      }
      if (!connection.isClosing() && connection.ageNanos() < SHORT_LIFE) {
        waitBeforeRedial(new IllegalStateException("closed right after it was dialled"));
      }
      begun = wanted();
    }
    begun.forEach(Dial::begin);
  }

  private void waitBeforeRedial(Throwable cause) {
    Duration delay = redial.failed(cause, now());
    if (!delay.isZero()) {
      Disposable.Swap timer = Disposables.swap();
      timers.add(timer);
      timer.update(
          settings
              .scheduler()
              .schedule(() -> redialFloor(timer), delay.toNanos(), TimeUnit.NANOSECONDS));
    }
  }

  private void redialFloor(Disposable timer) {
    List<Dial> begun;
    synchronized (lock) {
      timers.remove(timer);
      redial.rang();
      begun = wanted();
    }
    begun.forEach(Dial::begin);
  }

  // ---- age

  /** How often ages are looked at: a twentieth of the shortest, at most every 5 s. */
  private Duration lookEvery() {
    long shortest = TimeUnit.SECONDS.toNanos(100);
    for (Duration limit : List.of(settings.maxLifetime(), settings.idleTimeout())) {
      if (!limit.isZero()) {
        shortest = Math.min(shortest, limit.toNanos());
      }
    }
    return Duration.ofNanos(Math.max(shortest / 20, TimeUnit.MILLISECONDS.toNanos(10)));
  }

  /**
   * Retires what is too old, once there is another in its place, and what has been idle too long
   * above the floor. reactor-pool closes them when it next looks.
   */
  private void look() {
    List<Dial> begun;
    synchronized (lock) {
      int lasting = lasting();
      begun = wanted();
      boolean replaced =
          lasting >= settings.minIdle() || live.size() + dials.size() >= settings.maxSize();
      long idleTimeout = settings.idleTimeout().toNanos();
      for (ReaderConnection connection : live) {
        if (connection.isRetired()) {
          continue;
        }
        if (connection.isExpired()) {
          if (replaced) {
            connection.retire();
          }
        } else if (idleTimeout > 0
            && lasting > settings.minIdle()
            && connection.idleNanos() > idleTimeout) {
          connection.retire();
          lasting--;
        }
      }
    }
    begun.forEach(Dial::begin);
  }

  private long now() {
    return settings.scheduler().now(TimeUnit.NANOSECONDS);
  }

  // ---- the end

  private Mono<Void> shut() {
    List<Dial> underWay;
    synchronized (lock) {
      closed = true;
      underWay = List.copyOf(dials);
      dials.clear();
    }
    timers.dispose();
    underWay.forEach(Dial::abandon);
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
