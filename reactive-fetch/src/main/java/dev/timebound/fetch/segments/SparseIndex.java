package dev.timebound.fetch.segments;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Where some of a segment's batches begin: the first one past every so many bytes. One thread adds,
 * any may look up.
 */
final class SparseIndex {
  /** Of one entry in the index file. */
  static final int ENTRY = 20;

  /**
   * @param offsets base offset of the batch
   * @param positions where its frame begins
   * @param timestamps the latest time of all batches before it; never decreases
   */
  private record Entries(long[] offsets, int[] positions, long[] timestamps) {
    Entries grown() {
      int to = Math.max(16, offsets.length * 2);
      return new Entries(
          Arrays.copyOf(offsets, to), Arrays.copyOf(positions, to), Arrays.copyOf(timestamps, to));
    }
  }

  private final int every;
  private volatile Entries entries;

  /** Written after the entries that it counts, and read before them. */
  private volatile int size;

  SparseIndex(int every) {
    this.every = every;
    this.entries = new Entries(new long[0], new int[0], new long[0]);
  }

  /**
   * Told of each batch in order.
   *
   * @param timestampBefore the latest time of all batches before it
   */
  void add(long offset, int position, long timestampBefore) {
    int n = size;
    int last = n == 0 ? SegmentHeader.SIZE : entries.positions[n - 1];
    if (position - last < every) {
      return;
    }
    put(n, offset, position, timestampBefore);
  }

  private void put(int n, long offset, int position, long timestampBefore) {
    Entries now = entries;
    if (n == now.offsets.length) {
      now = now.grown();
      entries = now;
    }
    now.offsets[n] = offset;
    now.positions[n] = position;
    now.timestamps[n] = timestampBefore;
    size = n + 1;
  }

  /** Where to look for the batch that holds an offset: it is there, or after. */
  int floor(long offset) {
    int n = size;
    Entries now = entries;
    int low = 0;
    int high = n;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (now.offsets[middle] <= offset) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low == 0 ? SegmentHeader.SIZE : now.positions[low - 1];
  }

  /** Where to look for the first batch with a record at or after a time: it is there, or after. */
  int floorOfTime(long timestamp) {
    int n = size;
    Entries now = entries;
    int low = 0;
    int high = n;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (now.timestamps[middle] < timestamp) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low == 0 ? SegmentHeader.SIZE : now.positions[low - 1];
  }

  int size() {
    return size;
  }

  void writeTo(ByteBuffer file, int count) {
    Entries now = entries;
    for (int i = 0; i < count; i++) {
      file.putLong(now.offsets[i]).putInt(now.positions[i]).putLong(now.timestamps[i]);
    }
  }

  static SparseIndex read(ByteBuffer file, int count, int every) {
    SparseIndex index = new SparseIndex(every);
    for (int i = 0; i < count; i++) {
      index.put(i, file.getLong(), file.getInt(), file.getLong());
    }
    return index;
  }
}
