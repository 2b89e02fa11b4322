package dev.timebound.cas;

import static io.grpc.ConnectivityState.READY;

import io.github.resilience4j.core.IntervalFunction;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.Disposables;

/**
 * One endpoint of a shard: its connections, one as a rule, more where the server's streams have run
 * out (CAS-2c); and at most one attempt to connect at a time, after one that failed a pause and the
 * next.
 *
 * <p>A channel that loses its connection is left to the streams that still run on it, and another
 * one is made. A channel whose attempt failed is dropped, so that its own backoff, which grows to
 * minutes, never counts.
 *
 * <p>What is not volatile is guarded by the host's lock, under which all methods but the readers
 * are called.
 */
final class EndpointConnection implements ConnectAttempt.Wish {
  private static final Logger LOG = LoggerFactory.getLogger(CasRing.class);

  /**
   * The backoff's function takes the number of an attempt; the pauses have long stopped growing.
   */
  private static final int MOST_DOUBLINGS = 16;

  /** How often it is looked whether a connection beyond the first has been used. */
  private static final Duration IDLE_LOOK = Duration.ofSeconds(30);

  /** The shard. */
  interface Host {
    /** Runs a change under the shard's lock, and after it what the change led to. */
    void locked(Runnable change);

    /** A stream may be free that was not. From any thread. */
    void freed();

    /** Under the lock: there is a new connection. */
    void connected(EndpointChannel channel);

    /** Under the lock: an attempt has failed, or a connection was lost, or is back. */
    void changed();
  }

  private final Host host;
  private final String where;
  private final RingSettings settings;
  private final Supplier<RawChannel> opener;
  private final CasMeters meters;
  private final IntervalFunction backoff;

  private @Nullable ConnectAttempt attempt;
  private Disposable pause = Disposables.disposed();
  private Disposable idleLook = Disposables.disposed();
  private boolean looksForIdle;
  private boolean pauses;
  private int failedInARow;
  private boolean closed;

  /** Dropped ones whose streams may still run. */
  private final Set<EndpointChannel> retired = new HashSet<>();

  /** What takes calls, the first that has a free stream. */
  private volatile List<EndpointChannel> connected = List.of();

  /** Of the last attempt; null where that one connected or none has ended yet. */
  private volatile @Nullable Status failure;

  /**
   * @param where the shard's name and the endpoint, as errors name it
   * @param opener makes a channel that has not begun to connect
   */
  EndpointConnection(
      Host host,
      String where,
      RingSettings settings,
      Supplier<RawChannel> opener,
      CasMeters meters) {
    this.host = host;
    this.where = where;
    this.settings = settings;
    this.opener = opener;
    this.meters = meters;
    this.backoff = settings.reconnectBackoff();
  }

  /** A channel with a stream reserved for the caller; null where none is to be had. */
  @Nullable EndpointChannel reserve() {
    for (EndpointChannel channel : connected) {
      if (channel.reserve()) {
        return channel;
      }
    }
    return null;
  }

  List<EndpointChannel> connections() {
    return connected;
  }

  @Nullable Status failure() {
    return failure;
  }

  boolean isConnecting() {
    return attempt != null;
  }

  /** Calls open on any of its channels. */
  int openCalls() {
    Set<EndpointChannel> all = new HashSet<>(retired);
    all.addAll(connected);
    if (attempt != null) {
      all.add(attempt.channel());
      all.addAll(attempt.replaces());
    }
    return all.stream().mapToInt(EndpointChannel::openCalls).sum();
  }

  /** Begins an attempt unless it is connected or one is under way. */
  void connect() {
    if (!closed && connected.isEmpty() && attempt == null) {
      begin();
    }
  }

  /**
   * Begins an attempt at one more connection, where it is connected and may have more.
   *
   * @return whether one is under way now
   */
  boolean widen() {
    int most = settings.connectionsPerEndpoint();
    boolean may = !connected.isEmpty() && connected.size() < most && !pauses && !closed;
    if (attempt == null && may) {
      LOG.debug(
          "cas {}: all streams are in use, opening connection {}", where, connected.size() + 1);
      begin();
    }
    return attempt != null && !connected.isEmpty();
  }

  /**
   * Begins an attempt in place of the one under way, since what that one met may be over (CAS-2a),
   * and to replace the connections that stand, since nobody can tell one that is half open. Streams
   * that run on them run on.
   */
  void connectAnew() {
    List<EndpointChannel> doubtful = new ArrayList<>(connected);
    ConnectAttempt old = attempt;
    if (old != null) {
      attempt = null;
      old.end();
      doubtful.addAll(old.replaces());
      drop(old.channel(), Status.UNAVAILABLE.withDescription(where + ": connecting anew"));
    }
    if (!closed) {
      connected = List.of();
      ConnectAttempt anew = begin();
      doubtful.stream().distinct().forEach(channel -> replace(anew, channel));
    }
  }

  private ConnectAttempt begin() {
    pause.dispose();
    pauses = false;
    ConnectAttempt begun = new ConnectAttempt(this, newChannel(), settings.connectTimeout());
    attempt = begun;
    begun.begin();
    return begun;
  }

  private void replace(ConnectAttempt by, EndpointChannel doubtful) {
    doubtful.doubted();
    if (attempt == by) {
      by.replace(doubtful);
    }
  }

  private EndpointChannel newChannel() {
    return new EndpointChannel(
        opener.get(),
        where,
        settings.connectTimeout().toNanos(),
        settings::now,
        new EndpointChannel.Owner() {
          @Override
          public void doubt(EndpointChannel silent) {
            host.locked(() -> doubted(silent));
          }

          @Override
          public void freed() {
            host.freed();
          }
        });
  }

  /** Calls have waited in vain for as long as a new connection may take (CAS-2b). */
  private void doubted(EndpointChannel silent) {
    ConnectAttempt by = attempt;
    if (by != null && by.replaces().contains(silent)) {
      silent.doubted();
      return;
    }
    if (!connected.contains(silent)) {
      return;
    }
    LOG.warn("cas {}: nothing received while calls waited, connecting anew", where);
    ConnectAttempt anew = by == null ? begin() : by;
    replace(anew, silent);
    if (attempt == anew && anew.holdsBack()) {
      connected = without(List.of(silent));
    }
    host.changed();
  }

  void close() {
    closed = true;
    pause.dispose();
    idleLook.dispose();
    ConnectAttempt last = attempt;
    if (last != null) {
      attempt = null;
      last.end();
      last.channel().close();
      last.replaces().forEach(EndpointChannel::close);
    }
    connected.forEach(EndpointChannel::close);
    connected = List.of();
    retired.forEach(EndpointChannel::close);
  }

  // --- the attempt's side

  @Override
  public void locked(Runnable step) {
    host.locked(step);
  }

  @Override
  public Disposable later(Runnable step, long nanos) {
    try {
      return settings.scheduler().schedule(() -> host.locked(step), nanos, TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException shutDown) {
      return Disposables.disposed(); // no more timers: the next trial connects
    }
  }

  @Override
  public void connected(ConnectAttempt by) {
    if (failure != null) {
      LOG.info("cas {}: connected again after {} attempts that failed", where, failedInARow);
    }
    attempt = null;
    failedInARow = 0;
    failure = null;
    List<EndpointChannel> all = without(by.replaces());
    all.add(by.channel());
    connected = List.copyOf(all);
    by.replaces().forEach(this::leave);
    EndpointChannel channel = by.channel();
    channel.raw().notifyWhenStateChanged(READY, () -> host.locked(() -> lost(channel)));
    lookForIdle();
    host.connected(channel);
  }

  @Override
  public void heldBack(ConnectAttempt by) {
    List<EndpointChannel> all = without(by.replaces());
    all.addAll(by.replaces());
    connected = List.copyOf(all);
    host.changed();
  }

  /**
   * Connections that it was to replace are kept, unless they say nothing and nothing answered the
   * attempt either, or calls have waited on them in vain once more. (CAS-2b)
   */
  @Override
  public void failed(ConnectAttempt by, Status why) {
    attempt = null;
    failedInARow++;
    if (failedInARow == 1) {
      LOG.warn("cas {}", why.getDescription());
    } else {
      LOG.debug("cas {} ({} in a row)", why.getDescription(), failedInARow);
    }
    List<EndpointChannel> all = without(by.replaces());
    for (EndpointChannel doubtful : by.replaces()) {
      if (doubtful.isHopeless() || (doubtful.isQuiet() && by.isTimedOut())) {
        drop(doubtful, why);
      } else {
        all.add(doubtful);
      }
    }
    connected = List.copyOf(all);
    if (all.isEmpty()) {
      failure = why;
    }
    by.follows().forEach(lost -> lost.failWaiting(why));
    drop(by.channel(), why);
    long millis = backoff.apply(Math.min(failedInARow, MOST_DOUBLINGS));
    pauses = true;
    pause = later(this::afterPause, TimeUnit.MILLISECONDS.toNanos(millis));
    meters.connectFailed(where);
    host.changed();
  }

  private void afterPause() {
    pauses = false;
    if (connected.isEmpty()) {
      connect();
    } else {
      host.changed(); // who waits for a stream may want another connection
    }
  }

  // --- connections that stand

  /** What waits in it for a connection may have made it connect again by now. */
  private void lost(EndpointChannel channel) {
    ConnectAttempt by = attempt;
    boolean doubtful = by != null && by.replaces().contains(channel);
    if (!doubtful && !connected.contains(channel)) {
      return;
    }
    LOG.debug("cas {}: connection lost", where);
    if (by != null) {
      by.replaces().remove(channel);
    }
    connected = without(List.of(channel));
    leave(channel);
    if (connected.isEmpty()) {
      ConnectAttempt next = by == null ? begin() : by;
      next.follows().add(channel);
    }
    host.changed();
  }

  /** A list of one's own. */
  private List<EndpointChannel> without(List<EndpointChannel> some) {
    List<EndpointChannel> rest = new ArrayList<>(connected);
    rest.removeAll(some);
    return rest;
  }

  private void lookForIdle() {
    if (connected.size() > 1 && !looksForIdle) {
      looksForIdle = true;
      idleLook = later(this::retireIdle, IDLE_LOOK.toNanos());
    }
  }

  private void retireIdle() {
    looksForIdle = false;
    List<EndpointChannel> idle = new ArrayList<>();
    for (EndpointChannel channel :
        connected.subList(Math.min(1, connected.size()), connected.size())) {
      if (channel.isIdle()) {
        idle.add(channel);
      }
    }
    connected = List.copyOf(without(idle));
    idle.forEach(this::leave);
    lookForIdle();
  }

  /** What runs on it runs on. */
  private void leave(EndpointChannel channel) {
    retired.removeIf(EndpointChannel::isTerminated);
    retired.add(channel);
    channel.retire();
  }

  private void drop(EndpointChannel channel, Status why) {
    retired.removeIf(EndpointChannel::isTerminated);
    retired.add(channel);
    channel.retire(why);
  }
}
