package dev.timebound.bigtable;

import static dev.timebound.bigtable.ChunkStreams.bytes;
import static dev.timebound.bigtable.ChunkStreams.cell;
import static dev.timebound.bigtable.ChunkStreams.chunk;
import static dev.timebound.bigtable.ChunkStreams.marker;
import static dev.timebound.bigtable.ChunkStreams.message;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.bigtable.v2.ReadRowsResponse;
import com.google.protobuf.BytesValue;
import com.google.protobuf.StringValue;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

@DisplayName("rows from cell chunks")
class RowMergerTest {
  private static final ReadRowsResponse ROW_A =
      message(cell("a", "f", "q").setValue(bytes("1")).setCommitRow(true));

  @Nested
  class Rows {
    @Test
    @DisplayName("a row over several messages, its names stated once")
    void overMessages() {
      Merged merged =
          Merged.of(
              message(cell("a", "f", "q").setTimestampMicros(2000).setValue(bytes("new"))),
              message(chunk().setTimestampMicros(1000).setValue(bytes("old"))),
              message(chunk().setQualifier(BytesValue.of(bytes("r"))).setValue(bytes("r1"))),
              message(
                  chunk()
                      .setFamilyName(StringValue.of("g"))
                      .setQualifier(BytesValue.of(bytes("")))
                      .addLabels("x")
                      .addLabels("y")
                      .setValue(bytes("g1"))
                      .setCommitRow(true)));

      assertThat(merged.error).isNull();
      assertThat(merged.rows)
          .containsExactly(
              Row.of(
                  bytes("a"),
                  List.of(
                      new Cell("f", bytes("q"), 2000, bytes("new")),
                      new Cell("f", bytes("q"), 1000, bytes("old")),
                      new Cell("f", bytes("r"), 0, bytes("r1")),
                      new Cell("g", bytes(""), 0, bytes("g1"), List.of("x", "y")))));
    }

    @Test
    @DisplayName("the names of a row are one object each, however many cells share them")
    void namesShared() {
      Merged merged =
          Merged.of(
              message(cell("a", "f", "q").setValue(bytes("1"))),
              message(chunk().setTimestampMicros(1).setCommitRow(true)));

      List<Cell> cells = merged.rows.get(0).cells();
      assertThat(cells.get(1).family()).isSameAs(cells.get(0).family());
      assertThat(cells.get(1).qualifier()).isSameAs(cells.get(0).qualifier());
    }

    @Test
    @DisplayName("a family that comes again keeps its place: the cells are in the server's order")
    void serverOrder() {
      Merged merged =
          Merged.of(
              message(
                  cell("a", "z", "1"),
                  cell("a", "b", "2"),
                  cell("a", "z", "3").setCommitRow(true)));

      assertThat(merged.rows.get(0).cells())
          .extracting(Cell::family)
          .containsExactly("z", "b", "z");
    }

    @Test
    @DisplayName("more cells than the merger keeps room for, then a small row")
    void wide() {
      ReadRowsResponse.Builder wide = message(cell("a", "f", "q")).toBuilder();
      for (int i = 0; i < 3000; i++) {
        wide.addChunks(chunk().setTimestampMicros(i));
      }
      wide.addChunks(chunk().setCommitRow(true));
      Merged merged = Merged.of(wide.build(), message(cell("b", "f", "q").setCommitRow(true)));

      assertThat(merged.rows).extracting(r -> r.cells().size()).containsExactly(3002, 1);
    }

    @Test
    @DisplayName("a value over many pieces, an empty one among them")
    void pieces() {
      Merged merged =
          Merged.of(
              message(cell("a", "f", "q").addLabels("l").setValue(bytes("ab")).setValueSize(5)),
              message(chunk().setValueSize(5)),
              message(chunk().setValue(bytes("cd")).setValueSize(5)),
              message(chunk().setValue(bytes("e")).setCommitRow(true)));

      assertThat(merged.rows.get(0).cells())
          .containsExactly(new Cell("f", bytes("q"), 0, bytes("abcde"), List.of("l")));
    }

    @Test
    @DisplayName("an announced size is not believed before the bytes have come")
    void announcedOnly() {
      Merged merged =
          Merged.of(
              message(cell("a", "f", "q").setValue(bytes("ab")).setValueSize(Integer.MAX_VALUE)));

      assertThat(merged.fault()).isEqualTo(ChunkFault.END_IN_ROW);
    }

    @Test
    @DisplayName("a reset drops the row under way, and the next may be another")
    void reset() {
      Merged merged =
          Merged.of(
              message(cell("a", "f", "q").setValue(bytes("ab")).setValueSize(5)),
              message(chunk().setResetRow(true)),
              message(cell("b", "f", "q").setValue(bytes("2")).setCommitRow(true)));

      assertThat(merged.error).isNull();
      assertThat(merged.rows)
          .containsExactly(Row.of(bytes("b"), List.of(new Cell("f", bytes("q"), 0, bytes("2")))));
    }

    @Test
    @DisplayName("keys descend in a reversed read")
    void reversed() {
      List<ReadRowsResponse> stream =
          List.of(
              message(cell("b", "f", "q").setCommitRow(true)),
              message(cell("a", "f", "q").setCommitRow(true)));

      assertThat(Merged.of(stream, true).rows).hasSize(2);
      assertThat(Merged.of(stream, false).fault()).isEqualTo(ChunkFault.KEY_OUT_OF_ORDER);
    }

    @Test
    @DisplayName("keys sort as unsigned bytes")
    void unsigned() {
      ReadRowsResponse high =
          message(
              cell("", "f", "q")
                  .setRowKey(com.google.protobuf.ByteString.copyFrom(new byte[] {(byte) 0x80}))
                  .setCommitRow(true));

      assertThat(Merged.of(ROW_A, high).error).isNull();
      assertThat(Merged.of(high, ROW_A).fault()).isEqualTo(ChunkFault.KEY_OUT_OF_ORDER);
    }

    @Test
    @DisplayName("a scan marker comes in its place among the rows")
    void markers() {
      Merged merged =
          Merged.of(ROW_A, marker("c"), message(cell("d", "f", "q").setCommitRow(true)));

      assertThat(merged.error).isNull();
      assertThat(merged.all).extracting(r -> r.key().toStringUtf8()).containsExactly("a", "c", "d");
      assertThat(merged.rows).hasSize(2);
    }

    @Test
    @DisplayName("a resumed attempt may not go back to its resume point")
    void resumed() {
      RowMerger merger = new RowMerger(false, bytes("a"));

      assertThatThrownBy(() -> Merged.push(merger, ROW_A.toByteArray(), new Merged()))
          .isInstanceOfSatisfying(
              InvalidChunkStreamException.class,
              e -> assertThat(e.fault()).isEqualTo(ChunkFault.KEY_OUT_OF_ORDER));
    }
  }

  @Nested
  class Broken {
    static Stream<Arguments> streams() {
      return Stream.of(
          broken(ChunkFault.NO_ROW_KEY, message(chunk().setCommitRow(true))),
          broken(ChunkFault.NO_FAMILY, message(chunk().setRowKey(bytes("b")))),
          broken(
              ChunkFault.NO_QUALIFIER,
              message(chunk().setRowKey(bytes("b")).setFamilyName(StringValue.of("f")))),
          broken(ChunkFault.KEY_OUT_OF_ORDER, ROW_A),
          broken(ChunkFault.OTHER_ROW, message(cell("b", "f", "q")), message(cell("c", "f", "q"))),
          broken(
              ChunkFault.OTHER_ROW,
              message(cell("b", "f", "q").setValue(bytes("v")).setValueSize(2)),
              message(chunk().setRowKey(bytes("c")).setValue(bytes("w")))),
          broken(ChunkFault.RESET_WITHOUT_ROW, message(chunk().setResetRow(true))),
          broken(
              ChunkFault.RESET_WITH_DATA,
              message(cell("b", "f", "q"), chunk().setResetRow(true).setValue(bytes("v")))),
          broken(
              ChunkFault.RESET_WITH_DATA,
              message(cell("b", "f", "q"), chunk().setResetRow(true).setRowKey(bytes("b")))),
          broken(
              ChunkFault.RESET_WITH_DATA,
              message(cell("b", "f", "q"), chunk().setResetRow(true).addLabels("l"))),
          broken(ChunkFault.NEGATIVE_VALUE_SIZE, message(cell("b", "f", "q").setValueSize(-1))),
          broken(ChunkFault.EMPTY_FIRST_PIECE, message(cell("b", "f", "q").setValueSize(3))),
          broken(
              ChunkFault.COMMIT_IN_VALUE,
              message(cell("b", "f", "q").setValue(bytes("v")).setValueSize(3).setCommitRow(true))),
          broken(
              ChunkFault.CELL_IN_VALUE,
              message(cell("b", "f", "q").setValue(bytes("v")).setValueSize(3)),
              message(chunk().setTimestampMicros(5).setValue(bytes("vv")))),
          broken(
              ChunkFault.VALUE_SIZE_CHANGED,
              message(cell("b", "f", "q").setValue(bytes("v")).setValueSize(3)),
              message(chunk().setValue(bytes("v")).setValueSize(4))),
          broken(
              ChunkFault.VALUE_TOO_LONG,
              message(cell("b", "f", "q").setValue(bytes("v")).setValueSize(3)),
              message(chunk().setValue(bytes("vvv")))),
          broken(
              ChunkFault.VALUE_TOO_SHORT,
              message(cell("b", "f", "q").setValue(bytes("v")).setValueSize(3)),
              message(chunk().setValue(bytes("v")))),
          broken(ChunkFault.MARKER_IN_ROW, message(cell("b", "f", "q")), marker("c")),
          broken(ChunkFault.MARKER_OUT_OF_ORDER, marker("a")),
          broken(ChunkFault.END_IN_ROW, message(cell("b", "f", "q"))));
    }

    private static Arguments broken(ChunkFault fault, ReadRowsResponse... rest) {
      return Arguments.of(fault, List.of(rest));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("streams")
    @DisplayName("the row before it is delivered, then an error says what was wrong with which row")
    void named(ChunkFault fault, List<ReadRowsResponse> rest) {
      List<ReadRowsResponse> stream = Stream.concat(Stream.of(ROW_A), rest.stream()).toList();
      Merged merged = Merged.of(stream, false);

      assertThat(merged.rows).extracting(r -> r.key().toStringUtf8()).containsExactly("a");
      assertThat(merged.fault()).isEqualTo(fault);
      assertThat(merged.error)
          .hasMessageContaining(fault.text)
          .hasMessageContaining("after 1 whole rows");
    }

    @Test
    @DisplayName("the message shows the row's key, its unprintable bytes escaped")
    void messageText() {
      ReadRowsResponse open =
          ChunkStreams.message(cell("", "f", "q").setRowKey(bytes("k\u0001\"")));

      assertThat(Merged.of(open).error)
          .hasMessage(
              "invalid chunk stream: the stream ends in the middle of a row, row \"k\\x01\\\"\","
                  + " after 0 whole rows")
          .extracting(InvalidChunkStreamException::rowKey)
          .isEqualTo(bytes("k\u0001\""));
    }

    @Test
    @DisplayName("after a fault the merger takes nothing more")
    void refusesMore() {
      RowMerger merger = new RowMerger(false, null);
      assertThatThrownBy(
              () -> Merged.push(merger, ChunkStreams.message(chunk()).toByteArray(), new Merged()))
          .isInstanceOf(InvalidChunkStreamException.class);

      assertThatThrownBy(() -> Merged.push(merger, ROW_A.toByteArray(), new Merged()))
          .isInstanceOf(IllegalStateException.class);
      assertThat(merger.isRowUnderWay()).isFalse();
    }
  }
}
