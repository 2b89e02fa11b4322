package dev.timebound.cas;

import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ClientStreamTracer;
import io.grpc.ForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A call on an {@link EndpointChannel}: sees when it gets a connection and whether the server
 * answered, and words its end by that.
 */
final class EndpointCall<Q, R> extends ForwardingClientCall<Q, R> {
  private static final int NEW = 0;
  private static final int OPEN = 1;
  private static final int OVER = 2;

  /** Of {@link #turnAt}: it is this side's turn. */
  private static final long OURS = Long.MIN_VALUE;

  private final EndpointChannel channel;
  private final CallOptions options;
  private final ClientCall<Q, R> call;

  private final @Nullable CallStage stage;

  /** It sends as the call takes it, and is told when that is. */
  private final boolean upload;

  private final AtomicInteger state = new AtomicInteger(NEW);

  /** It holds one of the connection's streams. */
  private final AtomicBoolean holds = new AtomicBoolean();

  private boolean counted;

  /** It has a connection. */
  private volatile boolean placed;

  /** Something of it has come in. */
  private volatile boolean heard;

  private volatile long placedAt;

  /** Since when the server has been waited for: an upload may wait for its own content. (CAS-2b) */
  private volatile long turnAt = OURS;

  private volatile boolean halfClosed;

  /** Its headers have gone out: it has a stream. */
  private volatile boolean sent;

  /** The status is the server's own, by its trailers. */
  private volatile boolean answered;

  private volatile boolean cancelled;

  /** Why this side ended it while it waited for a connection. */
  private volatile @Nullable Status failed;

  EndpointCall(EndpointChannel channel, MethodDescriptor<Q, R> method, CallOptions options) {
    this.channel = channel;
    this.options = options;
    this.stage = options.getOption(CallStage.KEY);
    this.upload = !method.getType().clientSendsOneMessage();
    this.call = channel.raw().newCall(method, options.withStreamTracerFactory(new Trace()));
  }

  @Override
  protected ClientCall<Q, R> delegate() {
    return call;
  }

  /** It has a connection, or needs none any more. */
  boolean isPlaced() {
    return placed || state.get() == OVER;
  }

  /** Ends the call, which has no connection yet. */
  void fail(Status why) {
    failed = why;
    call.cancel("no connection", null);
  }

  @Override
  public void start(Listener<R> listener, Metadata headers) {
    Metadata own = options.getOption(EndpointChannel.HEADERS);
    headers.merge(own);
    holds.set(true);
    counted = channel.started();
    state.set(OPEN);
    if (upload) {
      turnAt = channel.now();
    }
    if (stage != null) {
      stage.at(this::waitsFor);
    }
    try {
      call.start(new Ending(listener), headers);
    } catch (RuntimeException e) {
      over();
      throw e;
    }
    if (!placed) {
      channel.waits(this);
    }
  }

  /** What of this side's it waits for. */
  private @Nullable String waitsFor() {
    boolean toBeTold = answered || (upload && !halfClosed && turnAt != OURS && call.isReady());
    if (toBeTold && state.get() == OPEN) {
      return CallStage.THREAD; // the answer is here, or it may go on, and nobody can tell of it
    }
    return placed && !sent && channel.isOverfull()
        ? "a free stream: " + channel.streams() + " calls are open on its connection"
        : null;
  }

  @Override
  public void cancel(@Nullable String message, @Nullable Throwable cause) {
    boolean inVain = placed && !heard && isServersTurn() && waitsFor() == null;
    if (stage != null) {
      stage.givenUp();
    }
    cancelled = true;
    call.cancel(message, cause);
    if (state.get() == OPEN) {
      letGo();
    }
    over();
    if (inVain) {
      channel.unanswered(Math.max(placedAt, turnAt));
    }
  }

  @Override
  public void sendMessage(Q message) {
    call.sendMessage(message);
    if (turnAt == OURS && !call.isReady()) {
      turnAt = channel.now();
    }
  }

  @Override
  public void halfClose() {
    turnAt = channel.now();
    halfClosed = true;
    call.halfClose();
  }

  /** It takes nothing more though something may be at hand, or it has all. */
  private boolean isServersTurn() {
    return halfClosed || (turnAt != OURS && !call.isReady());
  }

  /**
   * Where its connection is closed, with messages that nobody asked for, gRPC hears no cancel, says
   * no more of the call, and keeps what has come in for ever: it is asked for, and dropped. A call
   * whose connection stands has nothing left to give after its cancel.
   */
  private void letGo() {
    try {
      call.request(Integer.MAX_VALUE);
    } catch (RuntimeException noLoop) {
      // the ring is closed, and its channels with all they held
    }
  }

  private void hear() {
    if (!heard) {
      heard = true;
    }
    channel.heard();
  }

  private void over() {
    if (state.compareAndSet(OPEN, OVER)) {
      freeStream();
      channel.ended(this, counted);
    }
  }

  private void freeStream() {
    if (holds.compareAndSet(true, false)) {
      channel.freeStream();
    }
  }

  private Status told(Status status) {
    Status why = failed;
    if (why != null) {
      return why;
    }
    return status.isOk() || cancelled
        ? status
        : ShardStatuses.told(status, answered, channel.where());
  }

  private final class Ending extends SimpleForwardingClientCallListener<R> {
    Ending(Listener<R> listener) {
      super(listener);
    }

    @Override
    public void onReady() {
      if (!halfClosed && call.isReady()) { // or what was sent meanwhile has filled it again
        turnAt = OURS;
      }
      super.onReady();
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      over();
      super.onClose(told(status), trailers);
    }
  }

  private final class Trace extends ClientStreamTracer.Factory {
    @Override
    public ClientStreamTracer newClientStreamTracer(
        ClientStreamTracer.StreamInfo info, Metadata headers) {
      return new ClientStreamTracer() {
        @Override
        public void streamCreated(Attributes transport, Metadata sent) {
          long now = channel.now();
          placedAt = now;
          placed = true;
          channel.placed(EndpointCall.this, now);
        }

        @Override
        public void outboundHeaders() {
          sent = true;
        }

        @Override
        public void inboundHeaders(Metadata headers) {
          hear();
        }

        @Override
        public void inboundWireSize(long bytes) {
          hear();
        }

        @Override
        public void inboundTrailers(Metadata trailers) {
          hear();
          answered = true;
          freeStream();
        }
      };
    }
  }
}
