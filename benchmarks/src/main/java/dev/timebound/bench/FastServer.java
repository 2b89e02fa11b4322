package dev.timebound.bench;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.ReadRowsRequest;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.timebound.demo.Logs;
import io.grpc.Drainable;
import io.grpc.KnownLength;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A Bigtable that costs next to nothing: answers ReadRows and PingAndWarm from {@link Replies}, on
 * the event loop, without making a message object. It keeps to HTTP/2 flow control. A main of its
 * own: says {@code READY <port>}, ends when its standard input does, with its CPU time as figures.
 */
final class FastServer {
  /** Bytes a stream may have queued before the server waits for the transport. */
  private static final int QUEUED = 128 << 10;

  private FastServer() {}

  public static void main(String[] args) throws IOException, InterruptedException {
    Logs.quiet();
    Server server = start(new Replies());
    Usage start = Usage.now();
    System.out.println("READY " + server.getPort());
    while (System.in.read() >= 0) {
      // until the end of the input
    }
    System.out.println(Figures.none().with("cpu_ns", Usage.now().since(start).cpuNanos()));
    server.shutdownNow().awaitTermination();
  }

  static Server start(Replies replies) throws IOException {
    ServerServiceDefinition service =
        ServerServiceDefinition.builder(BigtableGrpc.SERVICE_NAME)
            .addMethod(
                bytes(BigtableGrpc.getReadRowsMethod()),
                (call, headers) -> new Sender(call, replies))
            .addMethod(
                bytes(BigtableGrpc.getPingAndWarmMethod()),
                (call, headers) -> new Sender(call, null))
            .build();
    return NettyServerBuilder.forAddress(new InetSocketAddress("localhost", 0))
        .directExecutor()
        .permitKeepAliveTime(1, java.util.concurrent.TimeUnit.SECONDS)
        .permitKeepAliveWithoutCalls(true)
        .addService(service)
        .build()
        .start();
  }

  /** The same method on plain bytes. */
  private static MethodDescriptor<byte[], byte[]> bytes(MethodDescriptor<?, ?> method) {
    return MethodDescriptor.<byte[], byte[]>newBuilder()
        .setType(method.getType())
        .setFullMethodName(method.getFullMethodName())
        .setRequestMarshaller(Bytes.MARSHALLER)
        .setResponseMarshaller(Bytes.MARSHALLER)
        .build();
  }

  /** Sends a call's messages as fast as the transport takes them. */
  private static final class Sender extends ServerCall.Listener<byte[]> {
    private final ServerCall<byte[], byte[]> call;
    private final @Nullable Replies replies;
    private @Nullable Iterator<byte[]> left;

    Sender(ServerCall<byte[], byte[]> call, @Nullable Replies replies) {
      this.call = call;
      this.replies = replies;
      call.setOnReadyThreshold(QUEUED);
      call.request(1);
    }

    @Override
    public void onMessage(byte[] request) {
      call.sendHeaders(new Metadata());
      Replies from = replies;
      try {
        // PingAndWarm: one empty message
        List<byte[]> answer =
            from == null ? List.of(new byte[0]) : from.to(ReadRowsRequest.parseFrom(request));
        left = answer.iterator();
        send();
      } catch (InvalidProtocolBufferException | IllegalArgumentException e) {
        call.close(Status.INVALID_ARGUMENT.withDescription(e.getMessage()), new Metadata());
      }
    }

    @Override
    public void onReady() {
      send();
    }

    private void send() {
      Iterator<byte[]> messages = left;
      if (messages == null) {
        return;
      }
      while (messages.hasNext()) {
        if (!call.isReady()) {
          return;
        }
        call.sendMessage(messages.next());
      }
      left = null;
      call.close(Status.OK, new Metadata());
    }

    @Override
    public void onCancel() {
      left = null;
    }
  }

  /** Messages as they are on the wire. */
  private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
    static final Bytes MARSHALLER = new Bytes();

    @Override
    public InputStream stream(byte[] message) {
      return new Message(message);
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

  /** A message that hands itself over in one piece. */
  private static final class Message extends ByteArrayInputStream
      implements Drainable, KnownLength {
    Message(byte[] bytes) {
      super(bytes);
    }

    @Override
    public int drainTo(OutputStream target) throws IOException {
      int length = count - pos;
      target.write(buf, pos, length);
      pos = count;
      return length;
    }
  }
}
