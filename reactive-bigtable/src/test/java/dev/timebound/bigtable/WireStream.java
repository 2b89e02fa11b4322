package dev.timebound.bigtable;

import com.google.protobuf.MessageLite;
import io.grpc.KnownLength;
import java.io.ByteArrayInputStream;

/** A message's bytes as the transport hands them to its marshaller. */
final class WireStream extends ByteArrayInputStream implements KnownLength {
  private final int missing;

  private WireStream(byte[] bytes, int missing) {
    super(bytes);
    this.missing = missing;
  }

  static WireStream of(MessageLite message) {
    return of(message.toByteArray());
  }

  static WireStream of(byte... bytes) {
    return new WireStream(bytes, 0);
  }

  /** Announces so many bytes more than it has. */
  static WireStream cut(byte[] bytes, int missing) {
    return new WireStream(bytes, missing);
  }

  @Override
  public synchronized int available() {
    return super.available() + missing;
  }
}
