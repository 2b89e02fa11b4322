package dev.timebound.bigtable;

import static dev.timebound.bigtable.ChunkStreams.bytes;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.RowFilter;
import com.google.protobuf.ByteString;
import java.util.List;
import java.util.Optional;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

@DisplayName("queries, ranges, filters")
class QueryTest {
  private static void refused(ThrowingCallable call, String message) {
    assertThatIllegalArgumentException().isThrownBy(call).withMessage(message);
  }

  @Nested
  class Queries {
    @Test
    @DisplayName("a query becomes one request, with all it was given")
    void request() {
      Query query =
          Query.builder("orders")
              .key("k1")
              .key("k1")
              .keys(List.of(bytes("k2")))
              .range("a", "b")
              .prefix("p#")
              .filter(Filters.latest(1))
              .limit(7)
              .reversed(true)
              .build();

      ReadRowsRequest request = query.toRequest("projects/p/instances/i/tables/orders", "prof");

      assertThat(request.getTableName()).isEqualTo("projects/p/instances/i/tables/orders");
      assertThat(request.getAppProfileId()).isEqualTo("prof");
      assertThat(request.getRows().getRowKeysList()).containsExactly(bytes("k1"), bytes("k2"));
      assertThat(request.getRows().getRowRangesList())
          .containsExactly(
              RowRange.closedOpen("a", "b").toProto(), RowRange.closedOpen("p#", "p$").toProto());
      assertThat(request.getFilter()).isEqualTo(Filters.latest(1));
      assertThat(request.getRowsLimit()).isEqualTo(7);
      assertThat(request.getReversed()).isTrue();
      assertThat(query.toBuilder().build()).isEqualTo(query).hasSameHashCodeAs(query);
      assertThat(query.toBuilder().limit(8).build()).isNotEqualTo(query);
      assertThat(query)
          .hasToString(
              "Query{orders, keys=2, ranges=2, filter=CELLS_PER_COLUMN_LIMIT_FILTER, limit=7,"
                  + " reversed}");
    }

    @Test
    @DisplayName("no key and no range: the whole table, and no row set on the wire")
    void whole() {
      assertThat(Query.builder("t").build().toRequest("n", "").hasRows()).isFalse();
      ReadRowsRequest all = Query.builder("t").range(RowRange.all()).build().toRequest("n", "");
      assertThat(all.getRows().getRowRangesCount()).isOne();
    }

    @Test
    @DisplayName("a builder used on does not change what it built")
    void immutable() {
      Query.Builder builder = Query.builder("t").key("a");
      Query query = builder.build();
      builder.key("b").range("c", "d");

      assertThat(query.keys()).containsExactly(bytes("a"));
      assertThat(query.ranges()).isEmpty();
    }

    @Test
    @DisplayName("what cannot be is refused at once, with setting, value and expectation")
    void refusals() {
      refused(
          () -> Query.builder("projects/p/instances/i/tables/t"),
          "tableId: \"projects/p/instances/i/tables/t\" (expected: the short id, not the full name)");
      refused(
          () -> Query.builder("a b"),
          "tableId: \"a b\" (expected: 1 to 50 of letters, digits, '_', '-' and '.', the first no"
              + " '-' or '.')");
      refused(() -> Query.builder("t").limit(-1), "limit: -1 (expected: >= 0, 0 for all)");
      refused(() -> Query.builder("t").key(""), "key: 0 bytes (expected: 1 to 4096 bytes)");
      refused(
          () -> Query.builder("t").key("x".repeat(4097)),
          "key: 4097 bytes (expected: 1 to 4096 bytes)");
      refused(
          () -> Query.builder("t").keys(List.of()),
          "keys: [] (expected: at least one key; without any the whole table is read)");
      refused(() -> Query.builder("t").prefix(""), "prefix: 0 bytes (expected: 1 to 4096 bytes)");
      refused(
          () -> Query.builder("t").range("b", "a"),
          "range: [\"b\", \"a\") (expected: one that can hold a key: start before end)");
      refused(
          () -> Query.builder("t").filter(RowFilter.getDefaultInstance()),
          "filter: an empty message (expected: a filter; leave it out to read all)");
    }
  }

  @Nested
  class Ranges {
    @Test
    @DisplayName("each kind of end")
    void ends() {
      assertThat(RowRange.closed("a", "c")).hasToString("[\"a\", \"c\"]");
      assertThat(RowRange.open("a", "c")).hasToString("(\"a\", \"c\")");
      assertThat(RowRange.closedOpen("a", "c")).hasToString("[\"a\", \"c\")");
      assertThat(RowRange.openClosed("a", "c")).hasToString("(\"a\", \"c\"]");
      assertThat(RowRange.atLeast("a")).hasToString("[\"a\", ∞)");
      assertThat(RowRange.after("a")).hasToString("(\"a\", ∞)");
      assertThat(RowRange.before("a")).hasToString("(-∞, \"a\")");
      assertThat(RowRange.atMost("a")).hasToString("(-∞, \"a\"]");
      assertThat(RowRange.all()).hasToString("(-∞, ∞)");
    }

    @Test
    @DisplayName("contains agrees with the ends")
    void contains() {
      assertThat(RowRange.closed("a", "c").contains(bytes("a"))).isTrue();
      assertThat(RowRange.closed("a", "c").contains(bytes("c"))).isTrue();
      assertThat(RowRange.closed("a", "c").contains(bytes("c\0"))).isFalse();
      assertThat(RowRange.open("a", "c").contains(bytes("a"))).isFalse();
      assertThat(RowRange.open("a", "c").contains(bytes("a\0"))).isTrue();
      assertThat(RowRange.open("a", "c").contains(bytes("c"))).isFalse();
      assertThat(RowRange.all().contains(bytes("x"))).isTrue();
    }

    @Test
    @DisplayName("a prefix ends before the next one, over bytes of 0xff too")
    void prefixes() {
      ByteString ff = ByteString.copyFrom(new byte[] {(byte) 0xff, (byte) 0xff});

      assertThat(RowRange.prefix("ab")).isEqualTo(RowRange.closedOpen("ab", "ac"));
      assertThat(RowRange.prefix(bytes("a").concat(ff)))
          .isEqualTo(RowRange.closedOpen(bytes("a").concat(ff), bytes("b")));
      assertThat(RowRange.prefix(ff)).isEqualTo(RowRange.atLeast(ff));
    }

    @Test
    @DisplayName("a range that can hold no key is refused, one that can hold one is not")
    void impossible() {
      assertThatIllegalArgumentException().isThrownBy(() -> RowRange.closedOpen("a", "a"));
      assertThatIllegalArgumentException().isThrownBy(() -> RowRange.open("a", "a\0"));
      assertThatIllegalArgumentException().isThrownBy(() -> RowRange.before("\0"));
      assertThat(RowRange.closed("a", "a").contains(bytes("a"))).isTrue();
      assertThat(RowRange.closedOpen("a", "a\0").contains(bytes("a"))).isTrue();
      assertThat(RowRange.openClosed("a", "a\0").contains(bytes("a\0"))).isTrue();
      assertThat(RowRange.atMost("\0").contains(bytes("\0"))).isTrue();
    }
  }

  @Nested
  class FiltersMade {
    @Test
    @DisplayName("exact names are quoted: what means something to RE2 is taken literally")
    void quoted() {
      assertThat(Filters.family("a.b").getFamilyNameRegexFilter()).isEqualTo("a\\.b");
      assertThat(Filters.qualifier("x*_9").getColumnQualifierRegexFilter())
          .isEqualTo(bytes("x\\*_9"));
      assertThat(Filters.value(bytes("\0ä")).getValueRegexFilter()).isEqualTo(bytes("\\x00ä"));
    }

    @Test
    @DisplayName("each sets its own field")
    void fields() {
      assertThat(Filters.familyRegex("f.*").getFamilyNameRegexFilter()).isEqualTo("f.*");
      assertThat(Filters.qualifierRegex("q.*").getColumnQualifierRegexFilter())
          .isEqualTo(bytes("q.*"));
      assertThat(Filters.rowKeyRegex("k.*").getRowKeyRegexFilter()).isEqualTo(bytes("k.*"));
      assertThat(Filters.valueRegex("v.*").getValueRegexFilter()).isEqualTo(bytes("v.*"));
      assertThat(Filters.latest(3).getCellsPerColumnLimitFilter()).isEqualTo(3);
      assertThat(Filters.cellsPerRowLimit(4).getCellsPerRowLimitFilter()).isEqualTo(4);
      assertThat(Filters.cellsPerRowOffset(5).getCellsPerRowOffsetFilter()).isEqualTo(5);
      assertThat(Filters.rowSample(0.5).getRowSampleFilter()).isEqualTo(0.5);
      assertThat(Filters.label("l-1").getApplyLabelTransformer()).isEqualTo("l-1");
      assertThat(Filters.stripValue().getStripValueTransformer()).isTrue();
      assertThat(Filters.pass().getPassAllFilter()).isTrue();
      assertThat(Filters.block().getBlockAllFilter()).isTrue();
      assertThat(Filters.timestampRange(1, 2).getTimestampRangeFilter().getEndTimestampMicros())
          .isEqualTo(2);
      var columns = Filters.qualifierRange("f", "a", "c").getColumnRangeFilter();
      assertThat(columns.getFamilyName()).isEqualTo("f");
      assertThat(columns.getStartQualifierClosed()).isEqualTo(bytes("a"));
      assertThat(columns.getEndQualifierOpen()).isEqualTo(bytes("c"));
      var values = Filters.valueRange(bytes("a"), ByteString.EMPTY).getValueRangeFilter();
      assertThat(values.getStartValueClosed()).isEqualTo(bytes("a"));
      assertThat(values.hasEndValueOpen()).isFalse();
      var condition =
          Filters.condition(Filters.pass(), Filters.latest(1), Filters.block()).getCondition();
      assertThat(condition.getTrueFilter()).isEqualTo(Filters.latest(1));
      assertThat(condition.getFalseFilter()).isEqualTo(Filters.block());
    }

    @Test
    @DisplayName("a chain or interleave of one is that one; of none is refused")
    void single() {
      assertThat(Filters.chain(Filters.pass())).isEqualTo(Filters.pass());
      assertThat(Filters.interleave(Filters.pass())).isEqualTo(Filters.pass());
      assertThat(Filters.chain(Filters.pass(), Filters.latest(1)).getChain().getFiltersCount())
          .isEqualTo(2);
      assertThat(
              Filters.interleave(Filters.pass(), Filters.block()).getInterleave().getFiltersCount())
          .isEqualTo(2);
      refused(Filters::chain, "chain: [] (expected: at least one filter)");
      refused(Filters::interleave, "interleave: [] (expected: at least one filter)");
    }

    @Test
    @DisplayName("figures out of range are refused")
    void refusals() {
      refused(() -> Filters.latest(0), "latest: 0 (expected: >= 1)");
      refused(() -> Filters.cellsPerRowLimit(0), "cellsPerRowLimit: 0 (expected: >= 1)");
      refused(() -> Filters.cellsPerRowOffset(-1), "cellsPerRowOffset: -1 (expected: >= 0)");
      refused(() -> Filters.rowSample(1), "rowSample: 1.0 (expected: > 0 and < 1)");
      refused(
          () -> Filters.timestampRange(5, 5),
          "timestampRange.end: 5 (expected: > start, or 0 for unbounded)");
      refused(
          () -> Filters.label("L"),
          "label: \"L\" (expected: 1 to 15 of lower-case letters, digits and '-')");
      refused(
          () -> Filters.valueRange(bytes("b"), bytes("a")),
          "valueRange: [\"b\", \"a\") (expected: start before end)");
    }
  }

  @Nested
  class Rows {
    private final Row row =
        Row.of(
            bytes("k"),
            List.of(
                new Cell("f", bytes("q"), 2, bytes("new")),
                new Cell("f", bytes("q"), 1, bytes("old")),
                new Cell("g", bytes("q"), 1, bytes("g"))));

    @Test
    @DisplayName("cells by family and by column")
    void lookup() {
      assertThat(row.cells("f")).hasSize(2);
      assertThat(row.cells("h")).isEmpty();
      assertThat(row.first("f", "q").map(Cell::value)).contains(bytes("new"));
      assertThat(row.first("g", "x")).isEqualTo(Optional.empty());
    }

    @Test
    @DisplayName("equal by key and cells; its text never shows a value")
    void values() {
      assertThat(row).isEqualTo(Row.of(bytes("k"), row.cells())).hasToString("Row{\"k\", 3 cells}");
      assertThat(row).isNotEqualTo(Row.of(bytes("k"), row.cells("f")));
    }
  }
}
