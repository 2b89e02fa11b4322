package dev.timebound.fetch.segments;

import java.nio.ByteBuffer;
import java.util.function.LongFunction;
import reactor.core.publisher.MonoSink;

/** One batch on its way into a partition. */
final class Append {
  final Frame.Kind kind;
  final long producerId;
  final LongFunction<ByteBuffer> bytes;
  final int records;
  final long maxTimestamp;
  private final MonoSink<Long> sink;
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
      MonoSink<Long> sink) {
    this.kind = kind;
    this.producerId = producerId;
    this.bytes = bytes;
    this.records = records;
    this.maxTimestamp = maxTimestamp;
    this.sink = sink;
    sink.onCancel(() -> cancelled = true);
  }

  boolean isCancelled() {
    return cancelled;
  }

  void written() {
    sink.success(base);
  }

  void failed(Throwable cause) {
    sink.error(cause);
  }
}
