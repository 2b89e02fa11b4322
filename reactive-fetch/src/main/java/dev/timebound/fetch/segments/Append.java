package dev.timebound.fetch.segments;

import java.nio.ByteBuffer;
import java.util.function.LongFunction;
import reactor.core.publisher.MonoSink;

/** One batch on its way into a partition. */
final class Append {
  /** Is told how it ended, before its subscriber is. */
  interface Told {
    void ended(boolean written);
  }

  final Frame.Kind kind;
  final long producerId;
  final LongFunction<ByteBuffer> bytes;
  final int records;
  final long maxTimestamp;
  private final MonoSink<Long> sink;
  private final Told told;
  private volatile boolean cancelled;

  /** Where it was put; of the thread that writes. */
  long base;

  int position;

  Append(
      Frame.Kind kind,
      long producerId,
      LongFunction<ByteBuffer> bytes,
      int records,
      long maxTimestamp,
      MonoSink<Long> sink,
      Told told) {
    this.kind = kind;
    this.producerId = producerId;
    this.bytes = bytes;
    this.records = records;
    this.maxTimestamp = maxTimestamp;
    this.sink = sink;
    this.told = told;
    sink.onCancel(() -> cancelled = true);
  }

  boolean isCancelled() {
    return cancelled;
  }

  void written() {
    told.ended(true);
    sink.success(base);
  }

  void failed(Throwable cause) {
    told.ended(false);
    sink.error(cause);
  }
}
