package dev.timebound.bigtable;

import io.grpc.KnownLength;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;

/** Messages left as they came over the wire. */
final class MessageBytes implements MethodDescriptor.Marshaller<byte[]> {
  static final MessageBytes INSTANCE = new MessageBytes();

  private MessageBytes() {}

  @Override
  public InputStream stream(byte[] message) {
    return new ByteArrayInputStream(message);
  }

  @Override
  public byte[] parse(InputStream stream) {
    try {
      if (!(stream instanceof KnownLength)) {
        return stream.readAllBytes();
      }
      byte[] message = new byte[stream.available()];
      int n = stream.readNBytes(message, 0, message.length);
      if (n < message.length) {
        throw new IOException("message of " + message.length + " bytes ends after " + n);
      }
      return message;
    } catch (IOException e) {
      throw Status.INTERNAL
          .withDescription("the message could not be read")
          .withCause(e)
          .asRuntimeException();
    }
  }
}
