package dev.timebound.grpc;

import dev.timebound.health.Claim;
import dev.timebound.health.FailureKind;
import dev.timebound.health.QuarantinedException;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ClientStreamTracer;
import io.grpc.Deadline;
import io.grpc.ForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Schedulers;

/**
 * A call that takes its channel when it starts: one that is made and never started would hold a
 * claim for ever. It ends its claim once, whatever comes first: its close, its caller's cancel, an
 * adapter's verdict, a quarantine.
 */
final class PooledCall<Q, R> extends ClientCall<Q, R> {
  private final ChannelPool pool;
  private final MethodDescriptor<Q, R> method;
  private final CallOptions options;
  private final CallAttempt attempt;

  /** Null where the caller's side tells its waits itself. */
  private final @Nullable DerivedWaits waits;

  private @Nullable ClientCall<Q, R> delegate;
  private @Nullable Claim<PooledChannel> claim;
  private volatile boolean started;
  private volatile boolean cancelled;

  /** Its caller has left: nobody takes what may still come. */
  private volatile boolean abandoned;

  /** The transport has been told. */
  private volatile boolean told;

  private volatile @Nullable QuarantinedException quarantined;
  private volatile boolean answered;

  /** The transport has closed it. */
  private volatile boolean over;

  /** Null where its channel does not pace cancels. */
  private @Nullable EarlyEnd<R> earlyEnd;

  private final AtomicBoolean waitsForReset = new AtomicBoolean();

  PooledCall(ChannelPool pool, MethodDescriptor<Q, R> method, CallOptions options) {
    this.pool = pool;
    this.method = method;
    CallAttempt given = options.getOption(CallAttempt.KEY);
    if (given == null) {
      attempt = CallAttempt.create();
      waits = new DerivedWaits(attempt);
    } else {
      attempt = given;
      waits = null;
    }
    this.options = options.withStreamTracerFactory(new TracerFactory());
  }

  @Override
  public void start(Listener<R> listener, Metadata headers) {
    if (started || cancelled) {
      throw new IllegalStateException(started ? "call already started" : "call was cancelled");
    }
    // Counted before the pick: a quarantine may end the claim before pick returns, and no count may
    // go below 0.
    pool.callStarted();
    Claim<PooledChannel> picked = pick();
    if (picked == null) {
      // Only a closed pool is empty.
      pool.callEnded();
      ClientCall<Q, R> closed = new ClosedCall<>(pool.name(), options.getExecutor());
      delegate = closed;
      started = true;
      closed.start(listener, headers);
      return;
    }
    claim = picked;
    attempt.bind(picked, pool::callEnded);
    ClientCall<Q, R> call;
    try {
      call = picked.member().channel().newCall(method, options);
      delegate = call;
      call.start(new EndingListener(mayEndEarly(picked, listener)), headers);
    } catch (Throwable e) {
      end(picked.failed(FailureKind.CONNECTION, e));
      throw e;
    }
    started = true;
    // The quarantine, or a cancel from another thread, that came before the call could be
    // cancelled.
    QuarantinedException cause = quarantined;
    if (cause != null) {
      cancelTransport(cause.getMessage(), cause, quarantine(cause));
    } else if (cancelled) {
      cancel("cancelled while it started", null);
    }
  }

  private @Nullable Claim<PooledChannel> pick() {
    Set<String> avoid = attempt.avoided();
    Claim<PooledChannel> picked =
        pool.group()
            .pick(
                member -> member.isUnconnected() || avoid.contains(member.name()),
                this::quarantined);
    // Better one that failed than one where nothing can be sent.
    return picked != null
            && !avoid.isEmpty()
            && picked.member().isUnconnected()
            && picked.cancelled()
        ? pool.group().pick(PooledChannel::isUnconnected, this::quarantined)
        : picked;
  }

  private Listener<R> mayEndEarly(Claim<PooledChannel> picked, Listener<R> listener) {
    if (picked.member().pacer() == null) {
      return listener;
    }
    EarlyEnd<R> early = new EarlyEnd<>(listener);
    earlyEnd = early;
    return early;
  }

  private static Status quarantine(QuarantinedException cause) {
    return Status.UNAVAILABLE.withDescription(cause.getMessage()).withCause(cause);
  }

  /**
   * Has the server told; where this connection has sent as many resets as it may, later, and the
   * caller now. (BT-21a)
   */
  private void cancelTransport(
      @Nullable String message, @Nullable Throwable cause, Status forCaller) {
    Claim<PooledChannel> c = claim;
    CancelPacer pacer = c == null ? null : c.member().pacer();
    EarlyEnd<R> early = earlyEnd;
    if (pacer == null || early == null || over || !attempt.isSent()) {
      tell(message, cause);
      return;
    }
    if (!waitsForReset.compareAndSet(false, true)) {
      return;
    }
    if (pacer.tryNow()) {
      tell(message, cause);
      return;
    }
    pacer.later(
        () -> {
          if (over) {
            return false;
          }
          tell(message, cause);
          return true;
        });
    Executor given = options.getExecutor();
    Runnable end = () -> early.end(forCaller);
    if (given == null) {
      Schedulers.boundedElastic().schedule(end);
    } else {
      given.execute(end);
    }
  }

  private void tell(@Nullable String message, @Nullable Throwable cause) {
    started().cancel(message, cause);
    told = true;
    letGo();
  }

  /**
   * Where its connection is closed, with messages that nobody asked for, gRPC hears no cancel, says
   * no more of the call, and keeps what has come in for ever: it is asked for, and dropped. A call
   * whose connection stands has nothing left to give after its cancel. What a quarantine ended is
   * its caller's to read until that leaves.
   */
  private void letGo() {
    if (abandoned && told && !over) {
      try {
        started().request(Integer.MAX_VALUE);
      } catch (RuntimeException noLoop) {
        // the pool is closed, and its channels with all they held
      }
    }
  }

  /** The engine's worker: the claim has ended already. */
  private void quarantined(QuarantinedException cause) {
    quarantined = cause;
    pool.callEnded();
    pool.callQuarantined();
    if (started) {
      cancelTransport(cause.getMessage(), cause, quarantine(cause));
    }
  }

  @Override
  public void request(int messages) {
    if (waits != null) {
      waits.requested(messages);
    }
    started().request(messages);
  }

  @Override
  public void cancel(@Nullable String message, @Nullable Throwable cause) {
    if (quarantined == null) {
      // After a quarantine its close may be under way still, and tells of the quarantine.
      cancelled = true;
    }
    abandoned = true;
    if (started) {
      // First the claim, so that the close which the cancel brings says nothing of the channel.
      cancelClaim();
      cancelTransport(message, cause, Status.CANCELLED.withDescription(message).withCause(cause));
      letGo(); // where a quarantine has told the transport before
    }
  }

  private void cancelClaim() {
    Claim<PooledChannel> c = claim;
    if (c != null) {
      end(c.cancelled());
    }
  }

  @Override
  public void halfClose() {
    started().halfClose();
  }

  @Override
  public void sendMessage(Q message) {
    started().sendMessage(message);
  }

  @Override
  public boolean isReady() {
    ClientCall<Q, R> call = delegate;
    return call != null && call.isReady();
  }

  @Override
  public void setMessageCompression(boolean enabled) {
    started().setMessageCompression(enabled);
  }

  @Override
  public io.grpc.Attributes getAttributes() {
    ClientCall<Q, R> call = delegate;
    return call == null ? io.grpc.Attributes.EMPTY : call.getAttributes();
  }

  private ClientCall<Q, R> started() {
    ClientCall<Q, R> call = delegate;
    if (call == null) {
      throw new IllegalStateException("call not started");
    }
    return call;
  }

  /** On the transport's thread. */
  private boolean arriving() {
    Claim<PooledChannel> c = claim;
    return c != null && c.member().watch().isArriving();
  }

  private void end(boolean here) {
    if (here) {
      pool.callEnded();
    }
  }

  private final class EndingListener
      extends ForwardingClientCallListener.SimpleForwardingClientCallListener<R> {
    EndingListener(Listener<R> delegate) {
      super(delegate);
    }

    @Override
    public void onMessage(R message) {
      if (waits != null) {
        waits.received();
      }
      super.onMessage(message);
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      over = true;
      Claim<PooledChannel> c = claim;
      if (c != null) {
        countReset(c, status);
        endBy(c, status, trailers);
      }
      QuarantinedException cause = quarantined;
      // What the server had sent by then stands; only the cancel that the quarantine made is told
      // as what it is.
      if (cause != null && status.getCode() == Status.Code.CANCELLED && !cancelled) {
        super.onClose(quarantine(cause), trailers);
      } else {
        super.onClose(status, trailers);
      }
    }

    /** The call's own deadline sends a reset that nobody here was asked for. */
    private void countReset(Claim<PooledChannel> c, Status status) {
      CancelPacer pacer = c.member().pacer();
      if (pacer != null
          && status.getCode() == Status.Code.DEADLINE_EXCEEDED
          && !answered
          && attempt.isSent()) {
        pacer.sent();
      }
    }

    private void endBy(Claim<PooledChannel> c, Status status, Metadata trailers) {
      if (c.isEnded()) {
        return;
      }
      if (status.isOk()) {
        end(c.succeeded());
        return;
      }
      Deadline deadline = options.getDeadline();
      FailureKind kind =
          pool.classify(
              new EndedCall(
                  status,
                  trailers,
                  attempt.isSent(),
                  answered,
                  deadline != null && deadline.isExpired()));
      end(kind == null ? c.cancelled() : c.failed(kind, status.asException()));
    }
  }

  /** The transport's own word on what went out and what came in, partial messages too. */
  private final class TracerFactory extends ClientStreamTracer.Factory {
    @Override
    public ClientStreamTracer newClientStreamTracer(
        ClientStreamTracer.StreamInfo info, Metadata headers) {
      return new ClientStreamTracer() {
        @Override
        public void outboundHeaders() {
          attempt.headersSent();
        }

        @Override
        public void inboundHeaders(Metadata headers) {
          attempt.responseReceived(arriving());
        }

        @Override
        public void inboundWireSize(long bytes) {
          attempt.responseReceived(arriving());
        }

        @Override
        public void inboundTrailers(Metadata trailers) {
          answered = true;
          attempt.responseReceived(arriving());
        }
      };
    }
  }

  /**
   * For stubs that know nothing of attempts: they wait while they have asked for more than has
   * come.
   */
  private static final class DerivedWaits {
    private final CallAttempt attempt;
    private long outstanding;

    DerivedWaits(CallAttempt attempt) {
      this.attempt = attempt;
    }

    // request and onMessage come from two threads, and their order is what says who waits.
    synchronized void requested(int n) {
      outstanding += n;
      attempt.waiting();
    }

    synchronized void received() {
      outstanding--;
      if (outstanding <= 0) {
        attempt.idle();
      }
    }
  }
}
