package dev.timebound.bigtable;

import io.grpc.KnownLength;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Messages left as they came over the wire. Of those given back a few are kept, for the next to be
 * read into: what a scan's messages take is then not allocated anew for each. Whoever gives none
 * back loses nothing but that. Thread-safe.
 */
final class MessageBytes implements MethodDescriptor.Marshaller<Message> {
  static final MessageBytes INSTANCE = new MessageBytes();

  /** A power of two; each holds one message at most. */
  private static final int PLACES = 16;

  /** Longer ones are left to the collector, so that what is kept is 1 MiB at most. */
  private static final int LONGEST_KEPT = 64 << 10;

  private static final int SHORTEST = 512;

  /** A thread's own is always the same: threads rarely meet there. */
  private final AtomicReferenceArray<Message> kept = new AtomicReferenceArray<>(PLACES);

  MessageBytes() {}

  @Override
  public InputStream stream(Message message) {
    return new ByteArrayInputStream(message.bytes, 0, message.length);
  }

  @Override
  public Message parse(InputStream stream) {
    try {
      if (!(stream instanceof KnownLength)) {
        return new Message(stream.readAllBytes());
      }
      int length = stream.available();
      Message message = take(length);
      int n = stream.readNBytes(message.bytes, 0, length);
      if (n < length) {
        throw new IOException("message of " + length + " bytes ends after " + n);
      }
      message.length = length;
      return message;
    } catch (IOException e) {
      throw Status.INTERNAL
          .withDescription("the message could not be read")
          .withCause(e)
          .asRuntimeException();
    }
  }

  /** It may be read into from now on: nobody may look at it any more. */
  void giveBack(Message message) {
    if (message.bytes.length <= LONGEST_KEPT) {
      kept.lazySet(place(), message);
    }
  }

  private Message take(int length) {
    if (length > LONGEST_KEPT) {
      return new Message(new byte[length]);
    }
    Message free = kept.getAndSet(place(), null);
    // with room to spare: messages of a scan are of about one length
    return free != null && free.bytes.length >= length
        ? free
        : new Message(new byte[Math.max(SHORTEST, Math.min(LONGEST_KEPT, length + length / 2))]);
  }

  private static int place() {
    return (int) Thread.currentThread().getId() & (PLACES - 1);
  }
}
