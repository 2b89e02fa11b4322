package dev.timebound.bigtable;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.RowSet;
import com.google.protobuf.ByteString;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * How far one read has come, over all its attempts, and what is left of it. The resume point is the
 * last row DELIVERED downstream (a row that was received and not delivered is read again), or a
 * scan marker that lies past it, once every row before the marker has been delivered.
 *
 * <p>Not thread-safe: all calls come from the one serialised place that also hands the rows on.
 */
final class ReadProgress {
  /** A scan marker, and how many rows must have been delivered before it counts. */
  private record Marker(long rowsBefore, ByteString key) {}

  private final ReadRowsRequest original;

  /** Past this key nothing has been delivered; null: nothing has at all. */
  private @Nullable ByteString point;

  private long received;
  private long delivered;
  private final ArrayDeque<Marker> pending = new ArrayDeque<>();

  ReadProgress(ReadRowsRequest original) {
    this.original = original;
  }

  /** A whole row has come in; it waits to be delivered. */
  void received() {
    received++;
  }

  /** A scan marker has come in, after all the rows {@link #received} so far. */
  void scanned(ByteString key) {
    if (received == delivered) {
      point = key;
      return;
    }
    Marker latest = pending.peekLast();
    if (latest != null && latest.rowsBefore == received) {
      pending.removeLast();
    }
    pending.add(new Marker(received, key));
  }

  /** The next of the rows received has been handed downstream. */
  void delivered(ByteString key) {
    if (delivered == received) {
      throw new IllegalStateException("delivered more rows than were received");
    }
    delivered++;
    point = key;
    Marker next = pending.peek();
    if (next != null && next.rowsBefore == delivered) {
      point = next.key;
      pending.remove();
    }
  }

  /**
   * The request of the next attempt: what has not been delivered. Rows received and not delivered
   * count as never received from here on: the caller has dropped them, or drops them now.
   *
   * @return null where the read is done: its limit is reached, or no key of it is left. There is
   *     never a request with an empty row set, which would mean the whole table.
   */
  @Nullable ReadRowsRequest next() {
    received = delivered;
    pending.clear();
    long limit = original.getRowsLimit();
    if (limit > 0 && delivered >= limit) {
      return null;
    }
    if (point == null) {
      return original;
    }
    RowSet left = RowSets.past(original.getRows(), point, original.getReversed());
    if (left == null) {
      return null;
    }
    ReadRowsRequest.Builder request = original.toBuilder().setRows(left);
    if (limit > 0) {
      request.setRowsLimit(limit - delivered);
    }
    return request.build();
  }

  /** The key past which the next attempt reads, for {@link RowMerger}; null for all. */
  @Nullable ByteString resumePoint() {
    return point;
  }

  /** Rows delivered over all attempts. */
  long deliveredRows() {
    return delivered;
  }
}
