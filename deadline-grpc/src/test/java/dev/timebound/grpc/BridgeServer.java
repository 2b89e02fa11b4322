package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ConnectivityState;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.inprocess.InProcessChannelBuilder;
import io.grpc.inprocess.InProcessServerBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A server of one unary method and one for each way of streaming, on bytes, with a channel to it;
 * tells what it saw.
 */
final class BridgeServer implements AutoCloseable {
  enum Transport {
    IN_PROCESS,
    NETTY
  }

  static final MethodDescriptor<byte[], byte[]> UNARY = method("test/Unary", MethodType.UNARY);
  static final MethodDescriptor<byte[], byte[]> STREAM =
      method("test/Stream", MethodType.SERVER_STREAMING);
  static final MethodDescriptor<byte[], byte[]> COLLECT =
      method("test/Collect", MethodType.CLIENT_STREAMING);
  static final byte[] REQUEST = {1, 2, 3};

  final AtomicInteger started = new AtomicInteger();
  final AtomicInteger open = new AtomicInteger();
  final AtomicInteger cancelled = new AtomicInteger();

  /** By their numbers, from 1. */
  final List<Integer> cancelledCalls = new CopyOnWriteArrayList<>();

  final AtomicInteger sent = new AtomicInteger();
  final List<io.grpc.Deadline> deadlines = new CopyOnWriteArrayList<>();

  /** The messages of all requests. */
  final List<byte[]> received = Collections.synchronizedList(new ArrayList<>());

  /** What the client asked for on all calls, and what reached the listeners. */
  final AtomicLong asked = new AtomicLong();

  final AtomicLong delivered = new AtomicLong();
  final List<Integer> requests = new CopyOnWriteArrayList<>();

  private final Server server;
  private final ManagedChannel managed;
  final Channel channel;

  BridgeServer(Transport transport, Script script) {
    ServerServiceDefinition service =
        ServerServiceDefinition.builder("test")
            .addMethod(UNARY, handler(script))
            .addMethod(STREAM, handler(script))
            .addMethod(COLLECT, handler(script))
            .build();
    try {
      if (transport == Transport.NETTY) {
        server =
            NettyServerBuilder.forAddress(
                    new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                .addService(service)
                .build()
                .start();
        managed =
            NettyChannelBuilder.forAddress("127.0.0.1", server.getPort())
                .usePlaintext()
                .disableRetry()
                .flowControlWindow(256 * 1024)
                .maxInboundMessageSize(64 << 20)
                .build();
      } else {
        String name = InProcessServerBuilder.generateName();
        server = InProcessServerBuilder.forName(name).addService(service).build().start();
        managed = InProcessChannelBuilder.forName(name).build();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    channel = io.grpc.ClientInterceptors.intercept(managed, new Counting());
  }

  /** What the server does with a call once it has the request: all of it, of an upload. */
  interface Script {
    void run(Reply reply);

    /**
     * Told of each message of an upload.
     *
     * @return whether the next one is to be asked for
     */
    default boolean received(Reply reply, byte[] message) {
      return true;
    }

    /** Says nothing, ever. */
    static Script silent() {
      return reply -> {};
    }

    /** Answers with so many messages of so many bytes, at the client's pace, then OK. */
    static Script messages(int count, int bytes) {
      return reply -> reply.stream(count, bytes);
    }
  }

  final class Reply {
    private final ServerCall<byte[], byte[]> call;
    byte[] request = {};
    private boolean headersSent;
    private @Nullable Runnable onReady;

    private Reply(ServerCall<byte[], byte[]> call) {
      this.call = call;
    }

    void askForMore() {
      call.request(1);
    }

    Reply headers() {
      if (!headersSent) {
        headersSent = true;
        call.sendHeaders(new Metadata());
      }
      return this;
    }

    Reply compressed() {
      call.setCompression("gzip");
      headers();
      call.setMessageCompression(true);
      return this;
    }

    Reply message(byte[] message) {
      headers();
      call.sendMessage(message);
      sent.incrementAndGet();
      return this;
    }

    void close(Status status, Metadata trailers) {
      call.close(status, trailers);
    }

    void ok() {
      headers();
      close(Status.OK, new Metadata());
    }

    void stream(long count, int bytes) {
      byte[] message = new byte[bytes];
      long[] left = {count};
      onReady =
          () -> {
            while (left[0] > 0 && call.isReady()) {
              left[0]--;
              message(message);
              if (left[0] == 0) {
                ok();
              }
            }
          };
      if (count == 0) {
        ok();
      }
      onReady.run();
    }
  }

  private ServerCallHandler<byte[], byte[]> handler(Script script) {
    return (call, headers) -> {
      open.incrementAndGet();
      io.grpc.Deadline deadline = io.grpc.Context.current().getDeadline();
      if (deadline != null) {
        deadlines.add(deadline);
      }
      int number = started.incrementAndGet(); // last: who has waited for it sees the others
      call.request(1);
      Reply reply = new Reply(call);
      return new ServerCall.Listener<>() {
        @Override
        public void onMessage(byte[] message) {
          reply.request = message;
          received.add(message);
          boolean more = script.received(reply, message);
          if (more && call.getMethodDescriptor() == COLLECT) {
            reply.askForMore();
          }
        }

        @Override
        public void onHalfClose() {
          script.run(reply);
        }

        @Override
        public void onReady() {
          if (reply.onReady != null) {
            reply.onReady.run();
          }
        }

        @Override
        public void onCancel() {
          cancelledCalls.add(number);
          cancelled.incrementAndGet();
          open.decrementAndGet();
        }

        @Override
        public void onComplete() {
          open.decrementAndGet();
        }
      };
    };
  }

  private final class Counting implements ClientInterceptor {
    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(
        MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<R> listener, Metadata headers) {
          super.start(
              new io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener<>(
                  listener) {
                @Override
                public void onMessage(R message) {
                  delivered.incrementAndGet();
                  super.onMessage(message);
                }
              },
              headers);
        }

        @Override
        public void request(int messages) {
          asked.addAndGet(messages);
          requests.add(messages);
          super.request(messages);
        }
      };
    }
  }

  /** Connects, so that a call's brief deadline is not spent on that. */
  BridgeServer connected() {
    await("a connection", () -> managed.getState(true) == ConnectivityState.READY);
    return this;
  }

  /** The second call's cancel has been seen, that of the first would have been: it goes on. */
  void assertFirstGoesOn() {
    await("the cancel of the second call", () -> cancelledCalls.contains(2));
    assertThat(cancelledCalls).containsExactly(2);
    await("one open call", () -> open.get() == 1);
  }

  /** Asserts that the server ends up with no open call; waits for it. */
  void assertNothingOpen() {
    await("no open call at the server", () -> open.get() == 0);
  }

  static void await(String what, BooleanSupplier condition) {
    long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > end) {
        throw new AssertionError("not within 20 s: " + what);
      }
      Thread.onSpinWait();
      Thread.yield();
    }
  }

  @Override
  public void close() {
    managed.shutdownNow();
    server.shutdownNow();
    try {
      if (!managed.awaitTermination(20, TimeUnit.SECONDS)
          || !server.awaitTermination(20, TimeUnit.SECONDS)) {
        throw new AssertionError("did not stop");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  static MethodDescriptor<byte[], byte[]> method(String name, MethodType type) {
    return MethodDescriptor.<byte[], byte[]>newBuilder()
        .setType(type)
        .setFullMethodName(name)
        .setRequestMarshaller(new Bytes())
        .setResponseMarshaller(new Bytes())
        .build();
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
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
