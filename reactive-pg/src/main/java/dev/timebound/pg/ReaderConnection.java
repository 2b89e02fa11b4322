package dev.timebound.pg;

import io.netty.channel.Channel;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import reactor.core.publisher.Mono;

/**
 * One session on a reader: the driver's connection and its Netty channel.
 *
 * <p>The first of the three closes wins. Each returns at once.
 */
final class ReaderConnection {
  private static final long LENT = Long.MAX_VALUE;
  private static final long NEW = LENT - 1;

  private final PostgresqlConnection driver;
  private final Sockets sockets;
  private final Channel channel;
  private final PgSettings settings;
  private final long dialledAt;
  private final AtomicBoolean closing = new AtomicBoolean();
  private final NamedProofs proofs = new NamedProofs();

  private final AtomicLong idleSince = new AtomicLong(NEW);
  private volatile boolean retired;
  private volatile boolean hidesReplayPosition;

  private volatile long expiresAt = Long.MAX_VALUE;

  ReaderConnection(PostgresqlConnection driver, Sockets sockets, PgSettings settings) {
    Channel newest = sockets.newest();
    if (newest == null) {
      throw new IllegalStateException("the driver connected without a socket");
    }
    this.driver = driver;
    this.sockets = sockets;
    this.channel = newest;
    this.settings = settings;
    this.dialledAt = now();
  }

  PostgresqlConnection driver() {
    return driver;
  }

  /** Whether its server hides pg_last_wal_replay_lsn, found out by the first proof that asked. */
  boolean hidesReplayPosition() {
    return hidesReplayPosition;
  }

  void hidesReplayPosition(boolean hides) {
    hidesReplayPosition = hides;
  }

  NamedProofs proofs() {
    return proofs;
  }

  // ---- the pool's

  boolean isOpen() {
    return channel.isActive() && !closing.get();
  }

  /** Whether it was closed from this side, or is about to be. */
  boolean isClosing() {
    return closing.get();
  }

  void onClosed(Runnable told) {
    channel.closeFuture().addListener(closed -> told.run());
  }

  long ageNanos() {
    return now() - dialledAt;
  }

  /** The pool has it among its idle ones, if it has not lent it already. */
  void taken() {
    idleSince.compareAndSet(NEW, now());
  }

  void lent() {
    idleSince.set(LENT);
  }

  void returned() {
    idleSince.set(now());
  }

  boolean isIdle() {
    return idleSince.get() < NEW;
  }

  /** 0 while it is not idle. */
  long idleNanos() {
    long since = idleSince.get();
    return since < NEW ? now() - since : 0;
  }

  void expiresIn(long nanos) {
    expiresAt = now() + nanos;
  }

  boolean isExpired() {
    return now() >= expiresAt;
  }

  /** To be closed at its next return, or now if it is idle. */
  void retire() {
    retired = true;
  }

  boolean isRetired() {
    return retired;
  }

  private long now() {
    return settings.scheduler().now(TimeUnit.NANOSECONDS);
  }

  // ---- closing

  /** The socket, without a word. */
  void closeNow() {
    if (closing.compareAndSet(false, true)) {
      sockets.abort();
    }
  }

  /** As the protocol wants it, within the close timeout. */
  void closeGently() {
    if (closing.compareAndSet(false, true)) {
      driver
          .close()
          .timeout(settings.closeTimeout(), settings.scheduler())
          .contextWrite(callers -> Quiet.CONTEXT)
          .subscribe(null, failed -> sockets.abort());
    }
  }

  /**
   * Has the statement that runs cancelled, then closes the socket: within the cancel timeout. The
   * server may act on the request at any time later, so this session must serve nobody else.
   * (PG-19)
   */
  void cancelAndClose() {
    if (closing.compareAndSet(false, true)) {
      Mono.defer(driver::cancelRequest)
          .timeout(settings.cancelTimeout(), settings.scheduler())
          .contextWrite(callers -> Quiet.CONTEXT)
          .subscribe(null, failed -> sockets.abort(), sockets::abort);
    }
  }
}
