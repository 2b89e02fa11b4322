package dev.timebound.grpc;

import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;

/**
 * The size of a call's messages of one direction, as the transport tells them: free, where asking
 * the message itself would walk all of it.
 *
 * <p>{@link #lately} is the largest message seen, and it fades: each smaller one takes 1/32 of the
 * difference away, so that one large message does not slow the rest of a long stream. A message is
 * counted when it has come in, before it is parsed and handed on. A compressed one counts with its
 * uncompressed size, which is known only once it has been parsed.
 */
final class MessageSizes extends ClientStreamTracer.Factory {
  private static final AtomicLongFieldUpdater<MessageSizes> LATELY =
      AtomicLongFieldUpdater.newUpdater(MessageSizes.class, "lately");
  private static final AtomicLongFieldUpdater<MessageSizes> INFLATED =
      AtomicLongFieldUpdater.newUpdater(MessageSizes.class, "inflated");
  private static final Metadata.Key<String> ENCODING =
      Metadata.Key.of("grpc-encoding", Metadata.ASCII_STRING_MARSHALLER);
  private static final int FADE = 5;

  /**
   * One writer at a time: the transport's thread, or, where the stream is compressed, the
   * listener's.
   */
  private volatile long lately;

  /** Bytes of all messages so far after decompression; counted where compressed. */
  private volatile long inflated;

  private long inflatedBefore;

  /** Written before the first message is handed over. */
  private boolean compressed;

  private final boolean requests;

  private MessageSizes(boolean requests) {
    this.requests = requests;
  }

  static MessageSizes ofResponses() {
    return new MessageSizes(false);
  }

  /** Counted as they are sent, by whoever sends them. */
  static MessageSizes ofRequests() {
    return new MessageSizes(true);
  }

  /** Bytes of the largest message lately; 0 until the transport has told one. */
  long lately() {
    return lately;
  }

  /** From the listener's thread, when a message has been parsed. */
  void parsed() {
    if (compressed) {
      long now = inflated;
      record(now - inflatedBefore);
      inflatedBefore = now;
    }
  }

  @Override
  public ClientStreamTracer newClientStreamTracer(
      ClientStreamTracer.StreamInfo info, Metadata headers) {
    return requests ? new OutboundTracer() : new Tracer();
  }

  private void record(long bytes) {
    long before = lately;
    long now = bytes >= before ? Math.max(1, bytes) : before - ((before - bytes) >> FADE);
    if (now != before) {
      LATELY.lazySet(this, now);
    }
  }

  private final class Tracer extends ClientStreamTracer {
    @Override
    public void inboundHeaders(Metadata headers) {
      String encoding = headers.get(ENCODING);
      compressed = encoding != null && !encoding.equals("identity");
    }

    @Override
    public void inboundMessageRead(int number, long wireBytes, long uncompressedBytes) {
      if (!compressed && wireBytes >= 0) {
        record(wireBytes);
      }
    }

    @Override
    public void inboundUncompressedSize(long bytes) {
      if (compressed) {
        INFLATED.addAndGet(MessageSizes.this, bytes);
      }
    }
  }

  private final class OutboundTracer extends ClientStreamTracer {
    @Override
    public void outboundMessageSent(int number, long wireBytes, long uncompressedBytes) {
      if (uncompressedBytes >= 0) {
        record(uncompressedBytes);
      }
    }
  }
}
