package dev.timebound.cas;

import static io.grpc.ConnectivityState.READY;

import io.github.resilience4j.core.IntervalFunction;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Mono;

/**
 * One endpoint of a shard: at most one attempt to connect at a time, each with its limit, the
 * HTTP/2 handshake included (CAS-2), and after one that failed a pause and the next.
 *
 * <p>A connected channel that loses its connection is asked to connect again, as an attempt of its
 * own; streams that still run on the old connection run on. A channel whose attempt failed is
 * dropped, so that its own backoff, which grows to minutes, never counts.
 *
 * <p>What is not volatile is guarded by the host's lock, under which all methods but the two
 * readers are called.
 */
final class EndpointConnection {
  private static final Logger LOG = LoggerFactory.getLogger(CasRing.class);

  /**
   * The backoff's function takes the number of an attempt; the pauses have long stopped growing.
   */
  private static final int MOST_DOUBLINGS = 16;

  /** The shard. */
  interface Host {
    /** Runs a change under the shard's lock, and after it what the change led to. */
    void locked(Runnable change);

    /** Under the lock: an attempt has ended, or a connection was lost. */
    void changed(EndpointConnection endpoint);
  }

  private final Host host;
  private final String where;
  private final RingSettings settings;
  private final Supplier<ManagedChannel> opener;
  private final CasMeters meters;
  private final IntervalFunction backoff;

  private @Nullable Attempt attempt;
  private Disposable pause = Disposables.disposed();
  private int failedInARow;
  private boolean closed;

  /** Dropped ones whose streams may still run. */
  private final Set<EndpointChannel> retired = new HashSet<>();

  private @Nullable EndpointChannel connected;

  /** What callers get while it is connected. */
  private volatile @Nullable Mono<Channel> ready;

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
      Supplier<ManagedChannel> opener,
      CasMeters meters) {
    this.host = host;
    this.where = where;
    this.settings = settings;
    this.opener = opener;
    this.meters = meters;
    this.backoff = settings.reconnectBackoff();
  }

  @Nullable Mono<Channel> ready() {
    return ready;
  }

  @Nullable Status failure() {
    return failure;
  }

  boolean isConnecting() {
    return attempt != null;
  }

  /** Calls open on any of its channels. */
  int openCalls() {
    int open = connected == null ? 0 : connected.openCalls();
    open += attempt == null ? 0 : attempt.channel.openCalls();
    for (EndpointChannel channel : retired) {
      open += channel.openCalls();
    }
    return open;
  }

  /** Begins an attempt unless it is connected or one is under way. */
  void connect() {
    if (!closed && connected == null && attempt == null) {
      pause.dispose();
      new Attempt(newChannel()).begin();
    }
  }

  /**
   * Begins an attempt in place of the one under way, since what that one met may be over (CAS-2a),
   * and of a connection that stands, since nobody can tell one that is half open. Streams that run
   * on it run on.
   */
  void connectAnew() {
    Status why = Status.UNAVAILABLE.withDescription(where + ": connecting anew");
    Attempt old = attempt;
    if (old != null) {
      old.end();
      retire(old.channel, why);
    }
    EndpointChannel doubtful = connected;
    if (doubtful != null) {
      connected = null;
      ready = null;
      retire(doubtful, why);
    }
    connect();
  }

  private EndpointChannel newChannel() {
    return new EndpointChannel(
        opener.get(),
        where,
        settings.connectTimeout().toNanos(),
        settings::now,
        silent -> host.locked(() -> doubt(silent)));
  }

  /** Calls have waited in vain for as long as a new connection may take (CAS-2b). */
  private void doubt(EndpointChannel silent) {
    if (connected == silent) {
      LOG.warn("cas {}: nothing received while calls waited, connecting anew", where);
      connectAnew();
      host.changed(this);
    }
  }

  void close() {
    closed = true;
    pause.dispose();
    Attempt last = attempt;
    if (last != null) {
      last.end();
      last.channel.close();
    }
    EndpointChannel channel = connected;
    connected = null;
    ready = null;
    if (channel != null) {
      channel.close();
    }
    retired.forEach(EndpointChannel::close);
  }

  private void connected(EndpointChannel channel) {
    if (failure != null) {
      LOG.info("cas {}: connected again after {} attempts that failed", where, failedInARow);
    }
    failedInARow = 0;
    failure = null;
    connected = channel;
    ready = Mono.just(channel);
    host.changed(this);
    watch(channel, READY);
  }

  private void watch(EndpointChannel channel, ConnectivityState seen) {
    channel.raw().notifyWhenStateChanged(seen, () -> host.locked(() -> lookAfter(channel)));
  }

  private void lookAfter(EndpointChannel channel) {
    if (connected != channel) {
      return;
    }
    if (channel.raw().getState(false) == READY) {
      watch(channel, READY);
      return;
    }
    LOG.debug("cas {}: connection lost", where);
    connected = null;
    ready = null;
    new Attempt(channel).begin();
    host.changed(this);
  }

  private void failed(EndpointChannel channel, Status why) {
    failure = why;
    failedInARow++;
    if (failedInARow == 1) {
      LOG.warn("cas {}", why.getDescription());
    } else {
      LOG.debug("cas {} ({} in a row)", why.getDescription(), failedInARow);
    }
    meters.connectFailed(where);
    retire(channel, why);
    long millis = backoff.apply(Math.min(failedInARow, MOST_DOUBLINGS));
    pause = schedule(this::connect, TimeUnit.MILLISECONDS.toNanos(millis));
    host.changed(this);
  }

  private void retire(EndpointChannel channel, Status why) {
    retired.removeIf(EndpointChannel::isTerminated);
    channel.retire(why);
    retired.add(channel);
  }

  private Disposable schedule(Runnable change, long nanos) {
    try {
      return settings.scheduler().schedule(() -> host.locked(change), nanos, TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException shutDown) {
      return Disposables.disposed(); // no more timers: the next trial connects
    }
  }

  /** One attempt, on a new channel or on one that lost its connection. */
  private final class Attempt {
    private final EndpointChannel channel;
    private Disposable limit = Disposables.disposed();
    private boolean asked;

    Attempt(EndpointChannel channel) {
      this.channel = channel;
    }

    void begin() {
      attempt = this;
      limit =
          schedule(
              () -> fail("not connected within " + settings.connectTimeout() + ", HTTP/2 included"),
              settings.connectTimeout().toNanos());
      look();
    }

    void end() {
      attempt = null;
      limit.dispose();
    }

    private void look() {
      if (attempt != this) {
        return;
      }
      ConnectivityState state = channel.raw().getState(true);
      switch (state) {
        case READY -> {
          end();
          connected(channel);
          return;
        }
        case SHUTDOWN -> {
          fail("the channel was shut down");
          return;
        }
        case TRANSIENT_FAILURE -> askWhy();
        case IDLE, CONNECTING -> {}
      }
      channel.raw().notifyWhenStateChanged(state, () -> host.locked(this::look));
    }

    private void fail(String why) {
      failWith(Status.UNAVAILABLE.withDescription(where + ": " + why));
    }

    private void failWith(Status why) {
      if (attempt == this) {
        end();
        failed(channel, why);
      }
    }

    private Status notConnected(Status status) {
      return Status.UNAVAILABLE
          .withDescription(status.getDescription())
          .withCause(status.getCause());
    }

    /** A channel tells why it is not connected only to a call, which fails with it at once. */
    private void askWhy() {
      if (asked) {
        return;
      }
      asked = true;
      ClientCall<Object, Object> call = channel.newCall(Why.METHOD, CallOptions.DEFAULT);
      call.start(
          new ClientCall.Listener<>() {
            @Override
            public void onClose(Status status, Metadata trailers) {
              host.locked(() -> failWith(notConnected(status)));
            }
          },
          new Metadata());
    }
  }
}
