package dev.timebound.pg;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.Disposables;

/*
 * What a reader's pool holds and what it dials, when. A dial belongs to the pool and not to the read
 * that made it necessary: a read that stops waiting abandons none, and one that waits is served by
 * whichever connection is free first.
 *
 * "live" are the connections that count against the maximum, from their dial's success until they
 * are closed, or begin to be closed: a slot is free before the close. Dials under way count too.
 */
final class Slots {
  /** One that lived for less was not worth the dial: the next one for the floor waits a little. */
  private static final long SHORT_LIFE = TimeUnit.SECONDS.toNanos(1);

  private final String reader;
  private final PgSettings settings;
  private final PgMeters meters;
  private final RandomGenerator random;
  private final Dialler dialler;

  /** Takes in a connection that was dialled. */
  private final Consumer<ReaderConnection> taker;

  // guarded by lock; nothing that can call back is called under it
  private final Object lock = new Object();
  private final Set<ReaderConnection> live = new LinkedHashSet<>();
  private final Set<Dial> dials = new LinkedHashSet<>();
  private final Set<Waiter> waiters = new LinkedHashSet<>();
  private final Redial redial;
  private final Disposable.Composite timers = Disposables.composite();
  private boolean keepsFloor;
  private boolean closed;

  /** The server takes no more sessions than there are: none is dialled until the timer rings. */
  private boolean refusing;

  Slots(
      String reader,
      PgSettings settings,
      PgMeters meters,
      RandomGenerator random,
      Dialler dialler,
      Consumer<ReaderConnection> taker) {
    this.reader = reader;
    this.settings = settings;
    this.meters = meters;
    this.random = random;
    this.dialler = dialler;
    this.taker = taker;
    this.redial = new Redial(reader);
  }

  /** Begins to fill the floor and to look at ages. */
  void keepFloor() {
    List<Dial> begun;
    synchronized (lock) {
      if (closed || keepsFloor) {
        return;
      }
      keepsFloor = true;
      long every = lookEvery(settings).toNanos();
      timers.add(
          settings
              .scheduler()
              .schedulePeriodically(this::look, every, every, TimeUnit.NANOSECONDS));
      begun = wanted();
    }
    begun.forEach(Dial::begin);
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

  /** Frees its slot; the floor is filled up again. */
  void free(ReaderConnection connection) {
    List<Dial> begun;
    synchronized (lock) {
      if (!live.remove(connection)) {
        return;
      }
      begun = wanted();
    }
    begun.forEach(Dial::begin);
  }

  /** Ends what is under way; from now on nothing is dialled. */
  void close() {
    List<Dial> underWay;
    synchronized (lock) {
      closed = true;
      underWay = List.copyOf(dials);
      dials.clear();
    }
    timers.dispose();
    underWay.forEach(Dial::abandon);
  }

  // ---- figures

  /** Somewhat less than the wait: the dial that a read made necessary began after its wait did. */
  boolean dialHangs() {
    long bound = settings.acquireTimeout().toNanos() / 5 * 4;
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

  boolean hasConnections() {
    synchronized (lock) {
      return !live.isEmpty();
    }
  }

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

  int waiting() {
    synchronized (lock) {
      return waiters.size();
    }
  }

  int inUse() {
    synchronized (lock) {
      return live.size() + dials.size();
    }
  }

  // ---- dials

  private final class Dial {
    final long since = now();
    private final Disposable.Swap running = Disposables.swap();

    void begin() {
      running.update(
          dialler
              .dial(dialler.sockets())
              .subscribe(
                  connection -> arrived(this, connection),
                  cause -> failed(this, cause),
                  null,
                  Quiet.CONTEXT));
    }

    void abandon() {
      running.dispose();
    }
  }

  /**
   * The dials that are wanted now: one for each that waits, and what the floor lacks. The caller,
   * who holds the lock, begins them after it. At one that takes no more who waits gets one of the
   * connections there are.
   */
  private List<Dial> wanted() {
    if (closed) {
      return List.of();
    }
    List<Dial> begun = List.of();
    int lasting = lasting();
    while (live.size() + dials.size() < settings.maxSize()
        && (dials.size() < waiters.size() && !(refusing && !live.isEmpty())
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

  private void arrived(Dial dial, ReaderConnection connection) {
    long lifetime = settings.maxLifetime().toNanos();
    if (lifetime > 0) {
      // so that those dialled together do not all expire together
      connection.expiresIn(lifetime - (long) (lifetime * 0.1 * random.nextDouble()));
    }
    boolean late;
    synchronized (lock) {
      dials.remove(dial);
      late = closed;
      if (!late) {
        live.add(connection);
        refusing = false;
        redial.succeeded();
      }
    }
    meters.dialled(reader, "ok");
    if (late) {
      connection.closeNow();
      return;
    }
    taker.accept(connection);
    connection.onClosed(() -> lost(connection));
  }

  private void failed(Dial dial, Throwable cause) {
    List<Waiter> refused = new ArrayList<>();
    synchronized (lock) {
      dials.remove(dial);
      if (closed) {
        return;
      }
      refusing = SqlStates.refusesSessions(cause) && !live.isEmpty();
      if (waiters.size() > dials.size() && !refusing) {
        // with nothing left to hope for all are told; else the one whose dial this was
        boolean hopeless = dials.isEmpty() && live.isEmpty();
        for (Waiter waiter : waiters) {
          refused.add(waiter);
          if (!hopeless) {
            break;
          }
        }
        refused.forEach(waiters::remove);
      }
      // no other dial for those who wait on: a reader that refuses them would get one for each
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
      refusing = false;
      begun = wanted();
    }
    begun.forEach(Dial::begin);
  }

  // ---- age

  /** How often ages are looked at: a twentieth of the shortest, at most every 5 s. */
  static Duration lookEvery(PgSettings settings) {
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
}
