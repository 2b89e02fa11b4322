package dev.timebound.bigtable;

import com.google.bigtable.v2.RowRange;
import com.google.bigtable.v2.RowSet;
import com.google.protobuf.ByteString;
import org.jspecify.annotations.Nullable;

/**
 * What is left of a set of rows once a part of it, from its beginning or its end, has been read.
 */
final class RowSets {
  private RowSets() {}

  /** Whether no row key at all can lie in the range; an empty start or end is unbounded. */
  static boolean holdsNoKey(
      ByteString start, boolean startClosed, ByteString end, boolean endClosed) {
    if (start.isEmpty() || end.isEmpty()) {
      // below the least end there is always room: no key is empty, but "\0" is one
      return !end.isEmpty() && !endClosed && Keys.adjacent(ByteString.EMPTY, end);
    }
    int c = Keys.compare(start, end);
    if (c >= 0) {
      return c > 0 || !(startClosed && endClosed);
    }
    return !startClosed && !endClosed && Keys.adjacent(start, end);
  }

  /**
   * The rows of {@code rows} that lie past {@code point} in the direction of the read: after it, or
   * before it in a reversed one. An empty {@code rows} is the whole table.
   *
   * @return null where none is left; never an empty set, which would be the whole table again
   */
  static @Nullable RowSet past(RowSet rows, ByteString point, boolean reversed) {
    RowSet.Builder left = RowSet.newBuilder();
    for (ByteString key : rows.getRowKeysList()) {
      int c = Keys.compare(key, point);
      if (reversed ? c < 0 : c > 0) {
        left.addRowKeys(key);
      }
    }
    for (RowRange range : rows.getRowRangesList()) {
      addPast(left, range, point, reversed);
    }
    if (rows.getRowKeysCount() == 0 && rows.getRowRangesCount() == 0) {
      addPast(left, RowRange.getDefaultInstance(), point, reversed);
    }
    boolean none = left.getRowKeysCount() == 0 && left.getRowRangesCount() == 0;
    return none ? null : left.build();
  }

  private static void addPast(
      RowSet.Builder left, RowRange range, ByteString point, boolean reversed) {
    ByteString start = start(range);
    boolean startClosed = !range.hasStartKeyOpen();
    ByteString end = end(range);
    boolean endClosed = range.hasEndKeyClosed();
    RowRange.Builder cut = range.toBuilder();
    if (reversed) {
      if (end.isEmpty() || Keys.compare(end, point) >= 0) {
        end = point;
        endClosed = false;
        cut.setEndKeyOpen(point);
      }
    } else if (start.isEmpty() || Keys.compare(start, point) <= 0) {
      start = point;
      startClosed = false;
      cut.setStartKeyOpen(point);
    }
    if (!holdsNoKey(start, startClosed, end, endClosed)) {
      left.addRowRanges(cut);
    }
  }

  private static ByteString start(RowRange range) {
    return switch (range.getStartKeyCase()) {
      case START_KEY_CLOSED -> range.getStartKeyClosed();
      case START_KEY_OPEN -> range.getStartKeyOpen();
      case STARTKEY_NOT_SET -> ByteString.EMPTY;
    };
  }

  private static ByteString end(RowRange range) {
    return switch (range.getEndKeyCase()) {
      case END_KEY_OPEN -> range.getEndKeyOpen();
      case END_KEY_CLOSED -> range.getEndKeyClosed();
      case ENDKEY_NOT_SET -> ByteString.EMPTY;
    };
  }
}
