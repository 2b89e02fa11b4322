package dev.timebound.fetch.segments;

import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import java.util.List;

/**
 * What readers see of a partition. Immutable.
 *
 * @param segments in the order of their offsets; each begins where the one before it ends
 * @param position where the last batch ends in the last segment
 */
record LogView(List<Segment> segments, int position, Offsets offsets, Transactions transactions) {
  /** One past the last offset that a reader of this isolation sees. */
  long end(Isolation isolation) {
    return isolation == Isolation.READ_COMMITTED ? offsets.lastStable() : offsets.highWatermark();
  }

  /** Which segment holds an offset; −1 where none does. */
  int indexOf(long offset) {
    int low = 0;
    int high = segments.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (segments.get(middle).base <= offset) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }

  /** Where what is readable of a segment ends. */
  int limit(int index) {
    return index == segments.size() - 1 ? position : segments.get(index).length();
  }

  boolean holds(Segment segment) {
    int index = indexOf(segment.base);
    return index >= 0 && segments.get(index) == segment;
  }
}
