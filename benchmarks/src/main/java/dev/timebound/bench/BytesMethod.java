package dev.timebound.bench;

import com.google.protobuf.InvalidProtocolBufferException;
import io.grpc.Drainable;
import io.grpc.KnownLength;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;
import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A server's method on plain bytes: one request, and messages that were made before it came, handed
 * to the transport as fast as it takes them, without a message object.
 */
final class BytesMethod {
  /** Bytes a stream may have queued before the server waits for the transport. */
  private static final int QUEUED = 128 << 10;

  private BytesMethod() {}

  /** The messages that answer a request. */
  @FunctionalInterface
  interface Answer {
    /**
     * All of them, made beforehand.
     *
     * @throws IllegalArgumentException where there is none: status INVALID_ARGUMENT
     */
    List<byte[]> to(byte[] request) throws InvalidProtocolBufferException;
  }

  static ServerMethodDefinition<byte[], byte[]> of(MethodDescriptor<?, ?> method, Answer answer) {
    ServerCallHandler<byte[], byte[]> handler = (call, headers) -> new Sender(call, answer);
    return ServerMethodDefinition.create(
        MethodDescriptor.<byte[], byte[]>newBuilder()
            .setType(method.getType())
            .setFullMethodName(method.getFullMethodName())
            .setRequestMarshaller(Bytes.MARSHALLER)
            .setResponseMarshaller(Bytes.MARSHALLER)
            .build(),
        handler);
  }

  /** Sends a call's messages as fast as the transport takes them. */
  private static final class Sender extends ServerCall.Listener<byte[]> {
    private final ServerCall<byte[], byte[]> call;
    private final Answer answer;
    private @Nullable Iterator<byte[]> left;

    Sender(ServerCall<byte[], byte[]> call, Answer answer) {
      this.call = call;
      this.answer = answer;
      call.setOnReadyThreshold(QUEUED);
      call.request(1);
    }

    @Override
    public void onMessage(byte[] request) {
      call.sendHeaders(new Metadata());
      try {
        left = answer.to(request).iterator();
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
