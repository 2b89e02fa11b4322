package dev.timebound.demo.bigtable;

import java.util.HashSet;
import java.util.Set;

/**
 * The account of one read that should give rows {@code from} to {@code to} (exclusive), each once,
 * in order, each with its content. Not thread-safe: a read's signals come one after the other.
 */
public final class RowCheck {
  private final DemoTable table;
  private final int from;
  private final int to;
  private final Set<Integer> skipped = new HashSet<>();
  private int next;
  private long doubled;
  private long wrong;
  private long rows;

  public RowCheck(DemoTable table, int from, int to) {
    this.table = table;
    this.from = from;
    this.to = to;
    this.next = from;
  }

  /** A row came. */
  public void row(DemoRow row) {
    rows++;
    int index = table.index(row.key());
    if (index < from || index >= to) {
      wrong++;
      return;
    }
    if (!table.holds(index, row.value())) {
      wrong++;
    }
    if (index >= next) {
      for (int i = next; i < index; i++) {
        skipped.add(i);
      }
      next = index + 1;
    } else if (skipped.remove(index)) {
      wrong++; // it came, but not in its place
    } else {
      doubled++;
    }
  }

  /** The read says that this is all: what has not come by now is lost. */
  public void completed() {
    for (int i = next; i < to; i++) {
      skipped.add(i);
    }
    next = to;
  }

  /** The next row to come, where all went well so far. */
  public int next() {
    return next;
  }

  /** Rows that came, whatever they were. */
  public long rows() {
    return rows;
  }

  /** Rows that a later one overtook, or that a completed read never gave. */
  public long lost() {
    return skipped.size();
  }

  /** Rows that came again. */
  public long doubled() {
    return doubled;
  }

  /** Rows out of order, with a content not theirs, or that nobody asked for. */
  public long wrong() {
    return wrong;
  }
}
