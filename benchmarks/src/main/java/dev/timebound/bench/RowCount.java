package dev.timebound.bench;

import com.google.protobuf.ByteString;
import java.util.concurrent.atomic.LongAdder;

/**
 * Counts the rows of one scan after the other and looks at what is in them, so that no client gets
 * away without making it. Cheap: what is shared is written once in 100 rows. Not thread-safe.
 */
final class RowCount {
  private static final int BATCH = 100;

  private final LongAdder all;
  private final int rows;
  private final long bytes;
  private int scanRows;
  private long scanBytes;

  /**
   * @param all the rows of every scan together
   * @param rows what a whole scan must give
   * @param cells of a row
   */
  RowCount(LongAdder all, int rows, int cells) {
    this.all = all;
    this.rows = rows;
    this.bytes = (long) rows * cells * Replies.CELL_BYTES;
  }

  /** A part of a row's content. */
  void value(ByteString value) {
    scanBytes += value.size();
  }

  /** A row, after its content. */
  void row() {
    if (++scanRows % BATCH == 0) {
      all.add(BATCH);
    }
  }

  /**
   * The scan is over; the next one begins.
   *
   * @throws IllegalStateException where it did not give what it should
   */
  void scanEnded() {
    if (scanRows != rows || scanBytes != bytes) {
      throw new IllegalStateException(
          "a scan gave "
              + scanRows
              + " rows, "
              + scanBytes
              + " bytes (expected: "
              + rows
              + ", "
              + bytes
              + ")");
    }
    scanRows = 0;
    scanBytes = 0;
  }
}
