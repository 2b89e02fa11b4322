package dev.timebound.bigtable;

import com.google.bigtable.v2.ColumnRange;
import com.google.bigtable.v2.RowFilter;
import com.google.bigtable.v2.TimestampRange;
import com.google.bigtable.v2.ValueRange;
import com.google.protobuf.ByteString;
import java.util.List;
import java.util.regex.Pattern;

/**
 * The common filters, as the service's own message, so that they mix with any that is built by
 * hand. Regular expressions are RE2 and must match the whole name, qualifier, key or value.
 */
public final class Filters {
  private static final Pattern LABEL = Pattern.compile("[a-z0-9-]{1,15}");

  private Filters() {}

  // --- which rows and columns

  /** Rows whose key matches; the table is read all the same: ranges and prefixes are cheaper. */
  public static RowFilter rowKeyRegex(ByteString regex) {
    return filter().setRowKeyRegexFilter(regex).build();
  }

  public static RowFilter rowKeyRegex(String regex) {
    return rowKeyRegex(ByteString.copyFromUtf8(regex));
  }

  /** A sample of the rows: each is kept with this probability, more than 0 and less than 1. */
  public static RowFilter rowSample(double probability) {
    if (!(probability > 0 && probability < 1)) {
      throw Args.refused("rowSample", probability, "> 0 and < 1");
    }
    return filter().setRowSampleFilter(probability).build();
  }

  /** Cells of exactly this family. */
  public static RowFilter family(String name) {
    return familyRegex(quote(ByteString.copyFromUtf8(name)).toStringUtf8());
  }

  public static RowFilter familyRegex(String regex) {
    return filter().setFamilyNameRegexFilter(regex).build();
  }

  /** Cells of exactly this column, in whatever family. */
  public static RowFilter qualifier(ByteString qualifier) {
    return qualifierRegex(quote(qualifier));
  }

  public static RowFilter qualifier(String qualifier) {
    return qualifier(ByteString.copyFromUtf8(qualifier));
  }

  public static RowFilter qualifierRegex(ByteString regex) {
    return filter().setColumnQualifierRegexFilter(regex).build();
  }

  public static RowFilter qualifierRegex(String regex) {
    return qualifierRegex(ByteString.copyFromUtf8(regex));
  }

  /**
   * Cells of the columns {@code [start, end)} of one family. An empty start or end is unbounded.
   */
  public static RowFilter qualifierRange(String family, ByteString start, ByteString end) {
    ColumnRange.Builder range = ColumnRange.newBuilder().setFamilyName(family);
    if (!start.isEmpty()) {
      range.setStartQualifierClosed(start);
    }
    if (!end.isEmpty()) {
      range.setEndQualifierOpen(endAfter("qualifierRange", start, end));
    }
    return filter().setColumnRangeFilter(range).build();
  }

  public static RowFilter qualifierRange(String family, String start, String end) {
    return qualifierRange(family, ByteString.copyFromUtf8(start), ByteString.copyFromUtf8(end));
  }

  // --- which cells

  /** The newest {@code n} cells of each column, at least 1. */
  public static RowFilter latest(int n) {
    return filter()
        .setCellsPerColumnLimitFilter((int) Args.atLeast("latest", n, 1, ">= 1"))
        .build();
  }

  /** The first {@code n} cells of each row, at least 1. */
  public static RowFilter cellsPerRowLimit(int n) {
    return filter()
        .setCellsPerRowLimitFilter((int) Args.atLeast("cellsPerRowLimit", n, 1, ">= 1"))
        .build();
  }

  /** All but the first {@code n} cells of each row. */
  public static RowFilter cellsPerRowOffset(int n) {
    return filter()
        .setCellsPerRowOffsetFilter((int) Args.atLeast("cellsPerRowOffset", n, 0, ">= 0"))
        .build();
  }

  /**
   * Cells whose timestamp is in {@code [start, end)}, in microseconds; an end of 0 is unbounded.
   */
  public static RowFilter timestampRange(long startMicros, long endMicros) {
    Args.atLeast("timestampRange.start", startMicros, 0, ">= 0");
    if (endMicros != 0 && endMicros <= startMicros) {
      throw Args.refused("timestampRange.end", endMicros, "> start, or 0 for unbounded");
    }
    return filter()
        .setTimestampRangeFilter(
            TimestampRange.newBuilder()
                .setStartTimestampMicros(startMicros)
                .setEndTimestampMicros(endMicros))
        .build();
  }

  /** Cells of exactly this value. */
  public static RowFilter value(ByteString value) {
    return valueRegex(quote(value));
  }

  public static RowFilter valueRegex(ByteString regex) {
    return filter().setValueRegexFilter(regex).build();
  }

  public static RowFilter valueRegex(String regex) {
    return valueRegex(ByteString.copyFromUtf8(regex));
  }

  /** Cells whose value is in {@code [start, end)}. An empty start or end is unbounded. */
  public static RowFilter valueRange(ByteString start, ByteString end) {
    ValueRange.Builder range = ValueRange.newBuilder();
    if (!start.isEmpty()) {
      range.setStartValueClosed(start);
    }
    if (!end.isEmpty()) {
      range.setEndValueOpen(endAfter("valueRange", start, end));
    }
    return filter().setValueRangeFilter(range).build();
  }

  /** Every cell. */
  public static RowFilter pass() {
    return filter().setPassAllFilter(true).build();
  }

  /** No cell. */
  public static RowFilter block() {
    return filter().setBlockAllFilter(true).build();
  }

  // --- what becomes of them

  /** Replaces each value by an empty one. */
  public static RowFilter stripValue() {
    return filter().setStripValueTransformer(true).build();
  }

  /** Gives each cell a label of 1 to 15 of lower-case letters, digits and '-'. */
  public static RowFilter label(String label) {
    if (!LABEL.matcher(label).matches()) {
      throw Args.refused(
          "label", '"' + label + '"', "1 to 15 of lower-case letters, digits and '-'");
    }
    return filter().setApplyLabelTransformer(label).build();
  }

  // --- put together

  /** One filter after the other: a cell comes through that all let through. One at least. */
  public static RowFilter chain(RowFilter... filters) {
    if (filters.length < 2) {
      return single("chain", filters);
    }
    return filter().setChain(RowFilter.Chain.newBuilder().addAllFilters(List.of(filters))).build();
  }

  /** Filters side by side: what any lets through, as often as it is let through. One at least. */
  public static RowFilter interleave(RowFilter... filters) {
    if (filters.length < 2) {
      return single("interleave", filters);
    }
    return filter()
        .setInterleave(RowFilter.Interleave.newBuilder().addAllFilters(List.of(filters)))
        .build();
  }

  /** Of a row that {@code predicate} lets a cell of through, {@code then}; of others, otherwise. */
  public static RowFilter condition(RowFilter predicate, RowFilter then, RowFilter otherwise) {
    return filter()
        .setCondition(
            RowFilter.Condition.newBuilder()
                .setPredicateFilter(predicate)
                .setTrueFilter(then)
                .setFalseFilter(otherwise))
        .build();
  }

  /** The service refuses a chain or an interleave of one; of one it is the filter itself. */
  private static RowFilter single(String setting, RowFilter[] filters) {
    if (filters.length == 0) {
      throw Args.refused(setting, "[]", "at least one filter");
    }
    return filters[0];
  }

  private static ByteString endAfter(String setting, ByteString start, ByteString end) {
    if (Keys.compare(start, end) >= 0) {
      throw Args.refused(
          setting, "[" + Keys.show(start) + ", " + Keys.show(end) + ")", "start before end");
    }
    return end;
  }

  /** RE2 that matches exactly these bytes. */
  private static ByteString quote(ByteString literal) {
    ByteString.Output out = ByteString.newOutput(literal.size() + 8);
    for (int i = 0; i < literal.size(); i++) {
      int b = literal.byteAt(i) & 0xff;
      boolean plain =
          b >= 0x80
              || b == '_'
              || (b >= '0' && b <= '9')
              || (b >= 'a' && b <= 'z')
              || (b >= 'A' && b <= 'Z');
      if (b == 0) {
        // RE2 takes no backslash before a zero byte
        for (char c : "\\x00".toCharArray()) {
          out.write(c);
        }
      } else {
        if (!plain) {
          out.write('\\');
        }
        out.write(b);
      }
    }
    return out.toByteString();
  }

  private static RowFilter.Builder filter() {
    return RowFilter.newBuilder();
  }
}
