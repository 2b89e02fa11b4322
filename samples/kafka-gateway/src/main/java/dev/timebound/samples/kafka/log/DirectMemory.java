package dev.timebound.samples.kafka.log;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Keeps batches outside the heap, one behind the other in blocks: from there the network takes them
 * as they are, where bytes on the heap are copied for each answer. A block is freed when none of
 * its batches is referred to. Not thread-safe.
 */
final class DirectMemory {
  /** What is left to all partitions of a log. Thread-safe. */
  static final class Room {
    private final long most;
    private long taken; // guarded by this

    Room(long most) {
      this.most = most;
    }

    /**
     * @throws FullException where there is less left
     */
    synchronized ByteBuffer take(int bytes) {
      if (bytes > most - taken) {
        throw new FullException(most, null);
      }
      try {
        ByteBuffer block = ByteBuffer.allocateDirect(bytes);
        taken += bytes;
        return block;
      } catch (OutOfMemoryError others) { // who take of the same memory; nothing is broken by it
        throw new FullException(taken, others);
      }
    }
  }

  /** There is no room for a batch. */
  static final class FullException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private FullException(long bytes, @Nullable Throwable cause) {
      super("the log in memory is full with " + bytes + " bytes", cause);
    }
  }

  private static final int FIRST_BLOCK = 16 * 1024;
  private static final int LARGEST_BLOCK = 1024 * 1024;

  private final Room room;
  private ByteBuffer block = ByteBuffer.allocate(0);
  private int nextBlock = FIRST_BLOCK;

  DirectMemory(Room room) {
    this.room = room;
  }

  /** Bytes outside the heap that this process may have, those of the network among them. */
  static long limit() {
    @Nullable HotSpotDiagnosticMXBean options =
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
    long set =
        options == null ? 0 : Long.parseLong(options.getVMOption("MaxDirectMemorySize").getValue());
    return set > 0 ? set : Runtime.getRuntime().maxMemory();
  }

  /**
   * A copy of what the buffer has between position and limit.
   *
   * @throws FullException where there is no room for it; others may find some
   */
  ByteBuffer keep(ByteBuffer bytes) {
    int size = bytes.remaining();
    if (size > LARGEST_BLOCK / 4) {
      return room.take(size).put(bytes.duplicate()).flip();
    }
    if (size > block.remaining()) {
      block = room.take(Math.max(size, nextBlock));
      nextBlock = Math.min(LARGEST_BLOCK, nextBlock * 2);
    }
    ByteBuffer kept = block.slice(block.position(), size);
    block.position(block.position() + size);
    return kept.put(bytes.duplicate()).flip();
  }
}
