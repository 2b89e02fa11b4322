package dev.timebound.fetch.segments;

import dev.timebound.fetch.Offsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What was found of a partition.
 *
 * @param active what is appended to: the view's last segment, or one after it that holds nothing
 *     yet; null where there is none
 */
record Recovered(LogView view, @Nullable ActiveSegment active) {
  /** A partition that nothing was ever appended to. */
  static final Recovered NOTHING =
      new Recovered(
          new LogView(List.of(), SegmentHeader.SIZE, Offsets.of(0, 0, 0), Transactions.NONE), null);

  /** Where the last batch ends in the last of the segments. */
  static int limit(List<Segment> segments, @Nullable ActiveSegment active) {
    if (segments.isEmpty()) {
      return SegmentHeader.SIZE;
    }
    Segment last = segments.get(segments.size() - 1);
    return active != null && active.segment == last ? active.length() : last.length();
  }
}
