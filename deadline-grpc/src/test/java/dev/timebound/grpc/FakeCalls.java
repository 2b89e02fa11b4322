package dev.timebound.grpc;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** A channel whose calls do nothing by themselves: a test plays the transport. */
final class FakeCalls extends Channel {
  final List<FakeCall> calls = new CopyOnWriteArrayList<>();
  @Nullable RuntimeException onNewCall;
  @Nullable RuntimeException onStart;
  @Nullable RuntimeException onSend;
  Runnable whileSending = () -> {};
  @Nullable Status closeInStart;
  boolean isReadyAtFirst = true;

  FakeCall only() {
    if (calls.size() != 1) {
      throw new AssertionError("calls: " + calls.size());
    }
    return calls.get(0);
  }

  @Override
  @SuppressWarnings("unchecked")
  public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
    if (onNewCall != null) {
      throw onNewCall;
    }
    FakeCall call = new FakeCall(options);
    calls.add(call);
    return (ClientCall<Q, R>) call;
  }

  @Override
  public String authority() {
    return "fake";
  }

  final class FakeCall extends ClientCall<byte[], byte[]> {
    final CallOptions options;
    final AtomicInteger asked = new AtomicInteger();
    final AtomicInteger cancels = new AtomicInteger();
    final List<String> log = new CopyOnWriteArrayList<>();
    private final List<ClientStreamTracer> tracers = new ArrayList<>();
    private @Nullable Listener<byte[]> listener;
    final List<byte[]> sent = new CopyOnWriteArrayList<>();
    private int delivered;
    private volatile boolean ready = isReadyAtFirst;

    /** Messages the call takes before it is not ready any more. */
    final AtomicInteger takes = new AtomicInteger(Integer.MAX_VALUE);

    FakeCall(CallOptions options) {
      this.options = options;
      for (ClientStreamTracer.Factory factory : options.getStreamTracerFactories()) {
        tracers.add(
            factory.newClientStreamTracer(
                ClientStreamTracer.StreamInfo.newBuilder().setCallOptions(options).build(),
                new Metadata()));
      }
    }

    @Override
    public void start(Listener<byte[]> listener, Metadata headers) {
      log.add("start");
      if (onStart != null) {
        throw onStart;
      }
      this.listener = listener;
      if (closeInStart != null) {
        close(closeInStart);
      }
    }

    @Override
    public void request(int messages) {
      if (listener == null) {
        throw new IllegalStateException("not started");
      }
      asked.addAndGet(messages);
    }

    @Override
    public void cancel(@Nullable String message, @Nullable Throwable cause) {
      cancels.incrementAndGet();
    }

    @Override
    public void halfClose() {
      log.add("halfClose");
    }

    @Override
    public void sendMessage(byte[] message) {
      log.add("message");
      whileSending.run();
      if (onSend != null) {
        throw onSend;
      }
      sent.add(message);
      tracers.forEach(
          tracer -> tracer.outboundMessageSent(sent.size() - 1, message.length, message.length));
      synchronized (takes) {
        if (takes.decrementAndGet() == 0) {
          ready = false;
        }
      }
    }

    @Override
    public boolean isReady() {
      return ready;
    }

    /** The transport has room for so many messages more. */
    void ready(int messages) {
      synchronized (takes) {
        takes.set(messages);
        ready = true;
      }
      listener().onReady();
    }

    int outstanding() {
      return asked.get() - delivered;
    }

    /** As the transport and then the executor do it: sizes first, then the message. */
    void deliver(byte[] message) {
      tracers.forEach(tracer -> tracer.inboundMessageRead(0, message.length, -1));
      delivered++;
      listener().onMessage(message);
    }

    void close(Status status) {
      listener().onClose(status, new Metadata());
    }

    private Listener<byte[]> listener() {
      if (listener == null) {
        throw new IllegalStateException("not started");
      }
      return listener;
    }
  }
}
