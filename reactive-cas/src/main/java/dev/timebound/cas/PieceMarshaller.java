package dev.timebound.cas;

import com.google.protobuf.UnsafeByteOperations;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import io.grpc.KnownLength;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;

/**
 * Reads a message of a blob's stream with one copy, from the transport's buffers into the array
 * that the caller is given. gRPC's own marshaller copies twice: all of the message into an array
 * that it keeps, and the bytes from there.
 *
 * <p>Only a message that is its data and nothing else is read so, which is what servers send. Any
 * other (unknown fields, the data in two fields, a length that is not true) is left to gRPC's own,
 * which knows what is allowed and how to refuse the rest.
 */
final class PieceMarshaller implements MethodDescriptor.Marshaller<ReadResponse> {
  /** ByteStream's Read, its answers read here. */
  static final MethodDescriptor<ReadRequest, ReadResponse> READ =
      ByteStreamGrpc.getReadMethod().toBuilder()
          .setResponseMarshaller(
              new PieceMarshaller(ByteStreamGrpc.getReadMethod().getResponseMarshaller()))
          .build();

  private static final int TAG = ReadResponse.DATA_FIELD_NUMBER << 3 | 2;

  /** A varint that has more bits than a length has is left alone. */
  private static final int LONGEST_VARINT = 5;

  private final MethodDescriptor.Marshaller<ReadResponse> ordinary;

  PieceMarshaller(MethodDescriptor.Marshaller<ReadResponse> ordinary) {
    this.ordinary = ordinary;
  }

  @Override
  public InputStream stream(ReadResponse message) {
    return ordinary.stream(message);
  }

  @Override
  public ReadResponse parse(InputStream stream) {
    if (!(stream instanceof KnownLength)) {
      return ordinary.parse(stream); // gzipped, say
    }
    try {
      ByteArrayOutputStream seen = new ByteArrayOutputStream(1 + LONGEST_VARINT);
      int length = dataLength(stream, seen);
      if (length < 0 || length != stream.available()) {
        return ordinary.parse(
            new SequenceInputStream(new ByteArrayInputStream(seen.toByteArray()), stream));
      }
      byte[] data = new byte[length];
      int n = stream.readNBytes(data, 0, length);
      if (n < length) {
        throw new IOException("a message's data of " + length + " bytes ends after " + n);
      }
      return ReadResponse.newBuilder().setData(UnsafeByteOperations.unsafeWrap(data)).build();
    } catch (IOException e) {
      throw Status.INTERNAL
          .withDescription("a message of the blob's stream could not be read")
          .withCause(e)
          .asRuntimeException();
    }
  }

  /** What the head says that the data's length is; -1 where it is no head of data. */
  private static int dataLength(InputStream stream, ByteArrayOutputStream seen) throws IOException {
    if (next(stream, seen) != TAG) {
      return -1;
    }
    long length = 0;
    for (int i = 0; i < LONGEST_VARINT; i++) {
      int b = next(stream, seen);
      if (b < 0) {
        return -1;
      }
      length |= (b & 0x7fL) << (7 * i);
      if (b < 0x80) {
        return length <= Integer.MAX_VALUE ? (int) length : -1;
      }
    }
    return -1;
  }

  private static int next(InputStream stream, ByteArrayOutputStream seen) throws IOException {
    int b = stream.read();
    if (b >= 0) {
      seen.write(b);
    }
    return b;
  }
}
