package dev.timebound.bigtable;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.RowFilter;
import com.google.bigtable.v2.RowSet;
import com.google.protobuf.ByteString;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Which rows of which table to read, and what of them. Immutable; may be subscribed any number of
 * times.
 *
 * <p>Keys and ranges add up: a row that any of them names is read, once, in key order. A query that
 * names no key and no range reads the whole table. A collection of keys that turns out empty is
 * refused, since it would read the whole table too.
 *
 * <pre>{@code
 * Query query = Query.builder("orders")
 *     .prefix("customer#42#")
 *     .filter(Filters.chain(Filters.family("o"), Filters.latest(1)))
 *     .limit(100)
 *     .build();
 * }</pre>
 */
public final class Query {
  private final String tableId;
  private final List<ByteString> keys;
  private final List<RowRange> ranges;
  private final @Nullable RowFilter filter;
  private final long limit;
  private final boolean reversed;

  private Query(Builder builder) {
    this.tableId = builder.tableId;
    this.keys = List.copyOf(builder.keys);
    this.ranges = List.copyOf(builder.ranges);
    this.filter = builder.filter;
    this.limit = builder.limit;
    this.reversed = builder.reversed;
  }

  /**
   * Starts a query.
   *
   * @param tableId the table's short id, not its full name
   */
  public static Builder builder(String tableId) {
    return new Builder(Args.tableId(tableId));
  }

  public String tableId() {
    return tableId;
  }

  /** The single keys asked for, each once, in the order they were given. */
  public List<ByteString> keys() {
    return keys;
  }

  public List<RowRange> ranges() {
    return ranges;
  }

  /** Null where every cell of a row is read. */
  public @Nullable RowFilter filter() {
    return filter;
  }

  /** How many rows at most; 0 for all. */
  public long limit() {
    return limit;
  }

  /** Whether the rows come in descending key order. */
  public boolean reversed() {
    return reversed;
  }

  /** A builder that begins with all of this query's settings. */
  public Builder toBuilder() {
    Builder builder = new Builder(tableId);
    builder.keys.addAll(keys);
    builder.ranges.addAll(ranges);
    builder.filter = filter;
    builder.limit = limit;
    builder.reversed = reversed;
    return builder;
  }

  /**
   * The request of the first attempt.
   *
   * @param tableName the table's full name
   * @param appProfile empty for the instance's default
   */
  ReadRowsRequest toRequest(String tableName, String appProfile) {
    ReadRowsRequest.Builder request =
        ReadRowsRequest.newBuilder()
            .setTableName(tableName)
            .setAppProfileId(appProfile)
            .setRowsLimit(limit)
            .setReversed(reversed);
    if (!keys.isEmpty() || !ranges.isEmpty()) {
      RowSet.Builder rows = RowSet.newBuilder().addAllRowKeys(keys);
      for (RowRange range : ranges) {
        rows.addRowRanges(range.toProto());
      }
      request.setRows(rows);
    }
    if (filter != null) {
      request.setFilter(filter);
    }
    return request.build();
  }

  @Override
  public boolean equals(Object o) {
    return o instanceof Query other
        && tableId.equals(other.tableId)
        && keys.equals(other.keys)
        && ranges.equals(other.ranges)
        && Objects.equals(filter, other.filter)
        && limit == other.limit
        && reversed == other.reversed;
  }

  @Override
  public int hashCode() {
    return Objects.hash(tableId, keys, ranges, filter, limit, reversed);
  }

  /** Short, for log lines: counts of keys and ranges, not the keys themselves. */
  @Override
  public String toString() {
    return "Query{"
        + tableId
        + ", keys="
        + keys.size()
        + ", ranges="
        + ranges.size()
        + (filter == null ? "" : ", filter=" + filter.getFilterCase())
        + (limit == 0 ? "" : ", limit=" + limit)
        + (reversed ? ", reversed" : "")
        + "}";
  }

  /** Collects a {@link Query}. Every value is checked by its own setter. Not thread-safe. */
  public static final class Builder {
    private final String tableId;
    private final Set<ByteString> keys = new LinkedHashSet<>();
    private final List<RowRange> ranges = new ArrayList<>();
    private @Nullable RowFilter filter;
    private long limit;
    private boolean reversed;

    private Builder(String tableId) {
      this.tableId = tableId;
    }

    /** Adds one row, 1 to 4096 bytes. */
    public Builder key(ByteString key) {
      keys.add(Args.key("key", key));
      return this;
    }

    /** Adds one row, its key in UTF-8. */
    public Builder key(String key) {
      return key(ByteString.copyFromUtf8(key));
    }

    /**
     * Adds these rows; a key given twice is read once.
     *
     * @throws IllegalArgumentException where the collection is empty: left out, it would mean the
     *     whole table
     */
    public Builder keys(Collection<ByteString> keys) {
      if (keys.isEmpty()) {
        throw Args.refused("keys", "[]", "at least one key; without any the whole table is read");
      }
      keys.forEach(this::key);
      return this;
    }

    /** Adds the rows of a range. */
    public Builder range(RowRange range) {
      ranges.add(Objects.requireNonNull(range, "range"));
      return this;
    }

    /** Adds the rows of {@code [start, end)}. */
    public Builder range(ByteString start, ByteString end) {
      return range(RowRange.closedOpen(start, end));
    }

    /** Adds the rows of {@code [start, end)}, in UTF-8. */
    public Builder range(String start, String end) {
      return range(RowRange.closedOpen(start, end));
    }

    /** Adds the rows whose keys begin with {@code prefix}. */
    public Builder prefix(ByteString prefix) {
      return range(RowRange.prefix(prefix));
    }

    /** Adds the rows whose keys begin with {@code prefix}, in UTF-8. */
    public Builder prefix(String prefix) {
      return range(RowRange.prefix(prefix));
    }

    /**
     * What to read of each row; the last call counts. {@link Filters} makes the common ones, any
     * other is built with the service's own message. Default: everything.
     */
    public Builder filter(RowFilter filter) {
      if (filter.getFilterCase() == RowFilter.FilterCase.FILTER_NOT_SET) {
        throw Args.refused("filter", "an empty message", "a filter; leave it out to read all");
      }
      this.filter = filter;
      return this;
    }

    /** How many rows at most. Default: 0, for all. */
    public Builder limit(long rows) {
      this.limit = Args.atLeast("limit", rows, 0, ">= 0, 0 for all");
      return this;
    }

    /** Rows in descending key order. Default: false. */
    public Builder reversed(boolean reversed) {
      this.reversed = reversed;
      return this;
    }

    public Query build() {
      return new Query(this);
    }
  }
}
