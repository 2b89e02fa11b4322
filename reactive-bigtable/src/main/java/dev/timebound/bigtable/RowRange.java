package dev.timebound.bigtable;

import com.google.protobuf.ByteString;

/**
 * A contiguous range of row keys, each end closed, open or unbounded. Immutable. A range that could
 * hold no key at all is refused when it is made: the service has no way to say "nothing", and what
 * looks like nothing may read the whole table.
 *
 * <p>Keys are 1 to 4096 bytes; the String forms are UTF-8.
 */
public final class RowRange {
  private static final RowRange ALL = new RowRange(ByteString.EMPTY, true, ByteString.EMPTY, false);

  /** Empty: unbounded. */
  private final ByteString start;

  private final boolean startClosed;

  /** Empty: unbounded. */
  private final ByteString end;

  private final boolean endClosed;

  private RowRange(ByteString start, boolean startClosed, ByteString end, boolean endClosed) {
    this.start = start;
    this.startClosed = startClosed;
    this.end = end;
    this.endClosed = endClosed;
    if (RowSets.holdsNoKey(start, startClosed, end, endClosed)) {
      throw Args.refused("range", this, "one that can hold a key: start before end");
    }
  }

  /** Every key. */
  public static RowRange all() {
    return ALL;
  }

  /** {@code [start, end)}: the usual half-open range. */
  public static RowRange closedOpen(ByteString start, ByteString end) {
    return new RowRange(Args.key("start", start), true, Args.key("end", end), false);
  }

  public static RowRange closedOpen(String start, String end) {
    return closedOpen(ByteString.copyFromUtf8(start), ByteString.copyFromUtf8(end));
  }

  /** {@code [start, end]}. */
  public static RowRange closed(ByteString start, ByteString end) {
    return new RowRange(Args.key("start", start), true, Args.key("end", end), true);
  }

  public static RowRange closed(String start, String end) {
    return closed(ByteString.copyFromUtf8(start), ByteString.copyFromUtf8(end));
  }

  /** {@code (start, end)}. */
  public static RowRange open(ByteString start, ByteString end) {
    return new RowRange(Args.key("start", start), false, Args.key("end", end), false);
  }

  public static RowRange open(String start, String end) {
    return open(ByteString.copyFromUtf8(start), ByteString.copyFromUtf8(end));
  }

  /** {@code (start, end]}. */
  public static RowRange openClosed(ByteString start, ByteString end) {
    return new RowRange(Args.key("start", start), false, Args.key("end", end), true);
  }

  public static RowRange openClosed(String start, String end) {
    return openClosed(ByteString.copyFromUtf8(start), ByteString.copyFromUtf8(end));
  }

  /** {@code [start, ∞)}. */
  public static RowRange atLeast(ByteString start) {
    return new RowRange(Args.key("start", start), true, ByteString.EMPTY, false);
  }

  public static RowRange atLeast(String start) {
    return atLeast(ByteString.copyFromUtf8(start));
  }

  /** {@code (start, ∞)}. */
  public static RowRange after(ByteString start) {
    return new RowRange(Args.key("start", start), false, ByteString.EMPTY, false);
  }

  public static RowRange after(String start) {
    return after(ByteString.copyFromUtf8(start));
  }

  /** {@code (-∞, end)}. */
  public static RowRange before(ByteString end) {
    return new RowRange(ByteString.EMPTY, true, Args.key("end", end), false);
  }

  public static RowRange before(String end) {
    return before(ByteString.copyFromUtf8(end));
  }

  /** {@code (-∞, end]}. */
  public static RowRange atMost(ByteString end) {
    return new RowRange(ByteString.EMPTY, true, Args.key("end", end), true);
  }

  public static RowRange atMost(String end) {
    return atMost(ByteString.copyFromUtf8(end));
  }

  /** Every key that begins with {@code prefix}, the prefix itself too. */
  public static RowRange prefix(ByteString prefix) {
    ByteString after = Keys.afterPrefix(Args.key("prefix", prefix));
    return new RowRange(prefix, true, after == null ? ByteString.EMPTY : after, false);
  }

  public static RowRange prefix(String prefix) {
    return prefix(ByteString.copyFromUtf8(prefix));
  }

  public boolean contains(ByteString key) {
    if (!start.isEmpty()) {
      int c = Keys.compare(key, start);
      if (c < 0 || (c == 0 && !startClosed)) {
        return false;
      }
    }
    if (!end.isEmpty()) {
      int c = Keys.compare(key, end);
      return c < 0 || (c == 0 && endClosed);
    }
    return true;
  }

  com.google.bigtable.v2.RowRange toProto() {
    com.google.bigtable.v2.RowRange.Builder range = com.google.bigtable.v2.RowRange.newBuilder();
    if (!start.isEmpty()) {
      if (startClosed) {
        range.setStartKeyClosed(start);
      } else {
        range.setStartKeyOpen(start);
      }
    }
    if (!end.isEmpty()) {
      if (endClosed) {
        range.setEndKeyClosed(end);
      } else {
        range.setEndKeyOpen(end);
      }
    }
    return range.build();
  }

  @Override
  public boolean equals(Object o) {
    return o instanceof RowRange other
        && start.equals(other.start)
        && startClosed == other.startClosed
        && end.equals(other.end)
        && endClosed == other.endClosed;
  }

  @Override
  public int hashCode() {
    return 31 * (31 * start.hashCode() + end.hashCode())
        + (startClosed ? 2 : 0)
        + (endClosed ? 1 : 0);
  }

  /** In interval notation: {@code ["a", "b")}. */
  @Override
  public String toString() {
    return (start.isEmpty() ? "(-∞" : (startClosed ? "[" : "(") + Keys.show(start))
        + ", "
        + (end.isEmpty() ? "∞)" : Keys.show(end) + (endClosed ? "]" : ")"));
  }
}
