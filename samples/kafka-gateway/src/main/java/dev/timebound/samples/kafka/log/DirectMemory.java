package dev.timebound.samples.kafka.log;

import java.nio.ByteBuffer;

/**
 * Keeps batches outside the heap, one behind the other in blocks: from there the network takes them
 * as they are, where bytes on the heap are copied for each answer. A block is freed when none of
 * its batches is referred to. It ends at {@code -XX:MaxDirectMemorySize}. Not thread-safe.
 */
final class DirectMemory {
  private static final int FIRST_BLOCK = 16 * 1024;
  private static final int LARGEST_BLOCK = 1024 * 1024;

  private ByteBuffer block = ByteBuffer.allocateDirect(0);
  private int nextBlock = FIRST_BLOCK;

  /** A copy of what the buffer has between position and limit. */
  ByteBuffer keep(ByteBuffer bytes) {
    int size = bytes.remaining();
    if (size > LARGEST_BLOCK / 4) {
      return ByteBuffer.allocateDirect(size).put(bytes.duplicate()).flip();
    }
    if (size > block.remaining()) {
      block = ByteBuffer.allocateDirect(Math.max(size, nextBlock));
      nextBlock = Math.min(LARGEST_BLOCK, nextBlock * 2);
    }
    ByteBuffer kept = block.slice(block.position(), size);
    block.position(block.position() + size);
    return kept.put(bytes.duplicate()).flip();
  }
}
