package dev.timebound.grpc;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ClientStreamTracer;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A channel whose transport is the test: every frame is a method call, on the test's own thread.
 */
final class FakeChannel extends ManagedChannel {
  static final MethodDescriptor<byte[], byte[]> METHOD =
      MethodDescriptor.<byte[], byte[]>newBuilder()
          .setType(MethodDescriptor.MethodType.SERVER_STREAMING)
          .setFullMethodName("test.Service/Read")
          .setRequestMarshaller(new Bytes())
          .setResponseMarshaller(new Bytes())
          .build();

  final List<FakeCall<?, ?>> calls = new CopyOnWriteArrayList<>();
  volatile boolean shutdown;
  volatile boolean shutdownNow;

  /** As a channel that has only what it must. */
  volatile boolean tellsNoState;

  private volatile ConnectivityState state = ConnectivityState.READY;
  private volatile @Nullable Runnable onStateChanged;

  /** Runs in start(), before it returns. */
  volatile @Nullable Runnable onStart;

  volatile @Nullable RuntimeException startFails;
  volatile @Nullable RuntimeException newCallFails;

  /** Its connection outlives the shutdown, for now. */
  volatile boolean connected;

  /** A cancel is not told to the listener until the test closes the call. */
  volatile boolean closesLate;

  @Override
  public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
    if (newCallFails != null) {
      throw newCallFails;
    }
    FakeCall<Q, R> call = new FakeCall<>(this, options);
    calls.add(call);
    return call;
  }

  FakeCall<?, ?> lastCall() {
    return calls.get(calls.size() - 1);
  }

  @Override
  public String authority() {
    return "fake";
  }

  @Override
  public ConnectivityState getState(boolean requestConnection) {
    if (tellsNoState) {
      return super.getState(requestConnection);
    }
    return shutdown ? ConnectivityState.SHUTDOWN : state;
  }

  @Override
  public void notifyWhenStateChanged(ConnectivityState source, Runnable callback) {
    if (tellsNoState) {
      super.notifyWhenStateChanged(source, callback);
    }
    if (getState(false) == source) {
      onStateChanged = callback;
    } else {
      callback.run();
    }
  }

  /** The connection is made, or fails, or is tried for. */
  FakeChannel becomes(ConnectivityState now) {
    state = now;
    Runnable callback = onStateChanged;
    onStateChanged = null;
    if (callback != null) {
      callback.run();
    }
    return this;
  }

  @Override
  public ManagedChannel shutdown() {
    shutdown = true;
    return this;
  }

  @Override
  public boolean isShutdown() {
    return shutdown;
  }

  @Override
  public boolean isTerminated() {
    return shutdown && !connected && calls.stream().allMatch(call -> call.closed);
  }

  @Override
  public ManagedChannel shutdownNow() {
    shutdown = true;
    shutdownNow = true;
    calls.forEach(call -> call.close(Status.UNAVAILABLE.withDescription("shutdownNow")));
    return this;
  }

  @Override
  public boolean awaitTermination(long timeout, TimeUnit unit) {
    return isTerminated();
  }

  static final class FakeCall<Q, R> extends ClientCall<Q, R> {
    private final FakeChannel channel;
    private final CallOptions options;
    private final List<ClientStreamTracer> tracers = new CopyOnWriteArrayList<>();
    private volatile ClientCall.@Nullable Listener<R> listener;
    volatile boolean closed;
    private @Nullable Status endedAs;
    volatile boolean cancelled;
    volatile int requested;

    FakeCall(FakeChannel channel, CallOptions options) {
      this.channel = channel;
      this.options = options;
    }

    CallOptions options() {
      return options;
    }

    @Override
    public void start(Listener<R> responseListener, Metadata headers) {
      if (channel.startFails != null) {
        throw channel.startFails;
      }
      if (cancelled) {
        throw new IllegalStateException("call was cancelled");
      }
      Status before;
      synchronized (this) {
        listener = responseListener;
        before = endedAs;
      }
      if (before != null) {
        responseListener.onClose(before, new Metadata()); // as on a channel that was shut down
      }
      ClientStreamTracer.StreamInfo info =
          ClientStreamTracer.StreamInfo.newBuilder().setCallOptions(options).build();
      options
          .getStreamTracerFactories()
          .forEach(factory -> tracers.add(factory.newClientStreamTracer(info, headers)));
      if (channel.onStart != null) {
        channel.onStart.run();
      }
    }

    // --- what the transport would do

    void headersSent() {
      tracers.forEach(ClientStreamTracer::outboundHeaders);
    }

    void headersCome() {
      tracers.forEach(tracer -> tracer.inboundHeaders(new Metadata()));
      listener().onHeaders(new Metadata());
    }

    void bytesCome() {
      tracers.forEach(tracer -> tracer.inboundWireSize(10));
    }

    @SuppressWarnings("unchecked")
    void messageComes() {
      bytesCome();
      listener().onMessage((R) new byte[10]);
    }

    /** Started, and nobody has ended it. */
    boolean isOpen() {
      return listener != null && !closed && !cancelled;
    }

    /** The server's status, in its trailers. */
    void answer(Status status) {
      if (!closed) {
        tracers.forEach(tracer -> tracer.inboundTrailers(new Metadata()));
        close(status);
      }
    }

    /** A status that the client makes up: a reset, a connection that failed. */
    void close(Status status) {
      Listener<R> told;
      synchronized (this) {
        if (closed) {
          return;
        }
        closed = true;
        endedAs = status;
        told = listener;
      }
      if (told != null) {
        told.onClose(status, new Metadata());
      }
    }

    private Listener<R> listener() {
      Listener<R> started = listener;
      if (started == null) {
        throw new IllegalStateException("not started");
      }
      return started;
    }

    // --- what the caller does

    @Override
    public void request(int messages) {
      requested += messages;
    }

    @Override
    public void cancel(@Nullable String message, @Nullable Throwable cause) {
      cancelled = true;
      if (!channel.closesLate) {
        closeCancelled(message, cause);
      }
    }

    void closeCancelled(@Nullable String message, @Nullable Throwable cause) {
      close(Status.CANCELLED.withDescription(message).withCause(cause));
    }

    @Override
    public void halfClose() {}

    @Override
    public void sendMessage(Q message) {}
  }

  private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
    @Override
    public InputStream stream(byte[] value) {
      return new ByteArrayInputStream(value);
    }

    @Override
    public byte[] parse(InputStream stream) {
      try {
        return stream.readAllBytes();
      } catch (java.io.IOException e) {
        throw new java.io.UncheckedIOException(e);
      }
    }
  }
}
