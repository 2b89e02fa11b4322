package dev.timebound.fetch.segments;

import java.nio.ByteBuffer;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Buffers in which appends become one write; as many as are in use at once, and kept. */
final class Staging {
  static final int BYTES = 256 * 1024;

  private final ConcurrentLinkedQueue<ByteBuffer> idle = new ConcurrentLinkedQueue<>();

  ByteBuffer take() {
    ByteBuffer kept = idle.poll();
    return kept == null ? ByteBuffer.allocateDirect(BYTES) : kept;
  }

  void giveBack(ByteBuffer buffer) {
    idle.offer(buffer.clear());
  }
}
