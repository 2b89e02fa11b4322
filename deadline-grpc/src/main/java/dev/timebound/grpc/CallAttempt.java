package dev.timebound.grpc;

import dev.timebound.health.Claim;
import dev.timebound.health.FailureKind;
import io.grpc.CallOptions;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * One attempt of one call, shared by the caller's side (the bridge, an adapter) and the pool. It
 * travels in the call's options under {@link #KEY}. The caller's side says when it waits; the pool
 * binds its claim and says what arrives.
 *
 * <p>{@link #waiting} and {@link #idle} come from one serialised place, the drain loop of the
 * caller. Everything else may come from any thread.
 */
public final class CallAttempt {
  /**
   * Where the attempt travels. A call without one has its waits derived from request(n) and
   * onMessage.
   */
  public static final CallOptions.Key<CallAttempt> KEY =
      CallOptions.Key.create("timebound-call-attempt");

  private static final AtomicLongFieldUpdater<CallAttempt> RECEIVED =
      AtomicLongFieldUpdater.newUpdater(CallAttempt.class, "received");
  private static final AtomicLongFieldUpdater<CallAttempt> MESSAGES_SENT =
      AtomicLongFieldUpdater.newUpdater(CallAttempt.class, "messagesSent");

  private final Set<String> avoid;
  private volatile boolean waits;
  private volatile boolean sent;
  private volatile @Nullable Claim<? extends PooledChannel> claim;
  private Runnable onEnd = () -> {};

  /** Written by the transport's one thread only; read by gap timeouts. */
  private volatile long received;

  /** Written by the drain loop of an upload only. */
  private volatile long messagesSent;

  private volatile boolean serversTurn;

  private CallAttempt(Set<String> avoid) {
    this.avoid = avoid;
  }

  public static CallAttempt create() {
    return new CallAttempt(Set.of());
  }

  /** An attempt that keeps off the named channels while another is in service. */
  public static CallAttempt avoiding(Set<String> channels) {
    return new CallAttempt(Set.copyOf(channels));
  }

  Set<String> avoided() {
    return avoid;
  }

  /**
   * Downstream has asked and nothing is at hand. Counts as a wait on the channel once the headers
   * have gone out.
   */
  public void waiting() {
    if (isToTell(true)) {
      Claim<?> c = claim;
      if (c != null) {
        c.waiting();
      }
    }
  }

  /** Downstream has what it asked for, or asks for nothing. */
  public void idle() {
    if (isToTell(false)) {
      Claim<?> c = claim;
      if (c != null) {
        c.idle();
      }
    }
  }

  /**
   * Whether the claim is to be told of it. Until the headers are out it is only noted, for {@link
   * #headersSent}; after that the note is of no use, and a stream of many messages is spared its
   * fences.
   */
  private boolean isToTell(boolean waiting) {
    if (!sent) {
      waits = waiting;
    }
    return sent;
  }

  /**
   * The adapter's own verdict (a gap timeout, say): ends the claim before the call is cancelled, so
   * that the cancel which follows says nothing. True where this ended the claim.
   */
  public boolean failed(FailureKind kind, @Nullable Throwable cause) {
    Claim<?> c = claim;
    if (c == null || !c.failed(kind, cause)) {
      return false;
    }
    onEnd.run();
    return true;
  }

  /**
   * Name of the channel the attempt went to; null until the pool has chosen one, or where no pool
   * is under the call.
   */
  public @Nullable String channel() {
    Claim<? extends PooledChannel> c = claim;
    return c == null ? null : c.member().name();
  }

  /**
   * Whether the request's headers have gone out: false while it is queued or waits for a
   * connection.
   */
  public boolean isSent() {
    return sent;
  }

  /**
   * Grows with each piece of the response that arrives (headers, a part of a message, trailers).
   */
  public long received() {
    return received;
  }

  /**
   * Grows with each message of a {@link GrpcCalls#clientStreaming} call that the transport has
   * taken. It takes one only when it has all but got rid of the one before.
   */
  public long messagesSent() {
    return messagesSent;
  }

  /**
   * Whether a {@link GrpcCalls#clientStreaming} call waits for the other side: the call takes
   * nothing more for now, or all has been sent. False while it waits for its own source, and until
   * it has started. With {@link #messagesSent} it tells a server that has stopped taking from a
   * source that is slow.
   */
  public boolean isServersTurn() {
    return serversTurn;
  }

  /** From the drain loop of an upload. */
  void sending(long messages, boolean serversTurn) {
    MESSAGES_SENT.lazySet(this, messages);
    if (this.serversTurn != serversTurn) {
      this.serversTurn = serversTurn;
    }
  }

  /** Whether the pool's claim on a channel has ended: by a quarantine, where nobody here did it. */
  boolean isEnded() {
    Claim<?> c = claim;
    return c != null && c.isEnded();
  }

  // --- the pool's side

  /**
   * {@code onEnd} runs where this attempt's own verdict ends the claim, so that the pool's count
   * follows.
   */
  void bind(Claim<? extends PooledChannel> claim, Runnable onEnd) {
    this.onEnd = onEnd;
    this.claim = claim;
  }

  /** From the transport's thread. */
  void headersSent() {
    sent = true;
    Claim<?> c = claim;
    if (waits && c != null) {
      c.waiting();
    }
  }

  /**
   * From the transport's thread.
   *
   * @param arriving false where it had come in earlier and is only now read: the caller has more,
   *     the connection has not received
   */
  void responseReceived(boolean arriving) {
    RECEIVED.lazySet(this, received + 1); // one writer, several times a message: no fence
    Claim<?> c = claim;
    if (arriving && c != null) {
      c.progress();
    }
  }
}
