package dev.timebound.bench;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.ReadRowsResponse;
import com.google.bigtable.v2.RowRange;
import com.google.protobuf.ByteString;
import com.google.protobuf.BytesValue;
import com.google.protobuf.StringValue;
import dev.timebound.demo.bigtable.DemoTable;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/**
 * Every reply of {@link FastServer}, made before the first request: whole messages as bytes. Two
 * tables for whole scans, {@link #NARROW} and {@link #WIDE} (10 rows a message, 1 and 10 cells of
 * 100 bytes a row), {@link #POINT} for rows like {@link #NARROW}'s one by one, and the {@link
 * DemoTable}, one row a message, of which any part may be read.
 */
final class Replies {
  static final String NARROW = "narrow";
  static final String WIDE = "wide";
  static final String POINT = "point";
  static final String DEMO = "demo";

  /** Rows of a whole scan. */
  static final int SCAN_ROWS = 10_000;

  static final int ROWS_PER_MESSAGE = 10;
  static final int CELL_BYTES = 100;
  static final int DEMO_ROWS = 20_000;

  private final DemoTable demo = new DemoTable(DEMO_ROWS);
  private final List<byte[]> narrow = scan(1, ROWS_PER_MESSAGE);
  private final List<byte[]> wide = scan(10, ROWS_PER_MESSAGE);
  private final List<byte[]> point = scan(1, 1);
  private final List<byte[]> single = new ArrayList<>();

  Replies() {
    for (int i = 0; i < DEMO_ROWS; i++) {
      ReadRowsResponse.Builder message = ReadRowsResponse.newBuilder();
      addRow(message, demo.key(i), demo.cells(i));
      single.add(message.build().toByteArray());
    }
  }

  /** The messages that answer a request, in order. */
  List<byte[]> to(ReadRowsRequest request) {
    String table = request.getTableName();
    String id = table.substring(table.lastIndexOf('/') + 1);
    return switch (id) {
      case NARROW -> narrow;
      case WIDE -> wide;
      case POINT -> List.of(point.get(number(request.getRows().getRowKeys(0))));
      case DEMO -> part(request);
      default ->
          throw new IllegalArgumentException(
              "table: " + id + " (expected: narrow, wide, point or demo)");
    };
  }

  /** Keys first, then ranges, as they stand: the load asks for one of either at a time. */
  private List<byte[]> part(ReadRowsRequest request) {
    List<byte[]> rows = new ArrayList<>();
    for (ByteString key : request.getRows().getRowKeysList()) {
      int index = demo.index(key.toStringUtf8());
      if (index >= 0) {
        rows.add(single.get(index));
      }
    }
    for (RowRange range : request.getRows().getRowRangesList()) {
      rows.addAll(single.subList(first(range), end(range)));
    }
    long limit = request.getRowsLimit();
    return limit > 0 && limit < rows.size() ? rows.subList(0, (int) limit) : rows;
  }

  private int first(RowRange range) {
    return switch (range.getStartKeyCase()) {
      case START_KEY_CLOSED -> place(range.getStartKeyClosed());
      case START_KEY_OPEN -> Math.min(DEMO_ROWS, place(range.getStartKeyOpen()) + 1);
      case STARTKEY_NOT_SET -> 0;
    };
  }

  private int end(RowRange range) {
    return switch (range.getEndKeyCase()) {
      case END_KEY_OPEN -> Math.max(first(range), place(range.getEndKeyOpen()));
      case END_KEY_CLOSED -> Math.min(DEMO_ROWS, place(range.getEndKeyClosed()) + 1);
      case ENDKEY_NOT_SET -> DEMO_ROWS;
    };
  }

  /** The row with this key; the table's end for the one key of the load that no row has. */
  private int place(ByteString key) {
    int index = demo.index(key.toStringUtf8());
    return index < 0 ? DEMO_ROWS : index;
  }

  /** The key of a row of all tables but the demo's. */
  static String key(int row) {
    return String.format(Locale.ROOT, "row-%08d", row);
  }

  private static int number(ByteString key) {
    return Integer.parseInt(key.toStringUtf8().substring("row-".length()));
  }

  private static List<byte[]> scan(int cells, int rowsPerMessage) {
    Random random = new Random(cells);
    List<byte[]> messages = new ArrayList<>();
    for (int row = 0; row < SCAN_ROWS; ) {
      ReadRowsResponse.Builder message = ReadRowsResponse.newBuilder();
      for (int i = 0; i < rowsPerMessage; i++, row++) {
        List<ByteString> values = new ArrayList<>();
        for (int cell = 0; cell < cells; cell++) {
          byte[] value = new byte[CELL_BYTES];
          random.nextBytes(value);
          values.add(ByteString.copyFrom(value));
        }
        addRow(message, key(row), values);
      }
      messages.add(message.build().toByteArray());
    }
    return messages;
  }

  /**
   * As the server sends it: key, family and qualifier where they change, the commit at the last.
   */
  private static void addRow(
      ReadRowsResponse.Builder message, String key, List<ByteString> values) {
    for (int i = 0; i < values.size(); i++) {
      ReadRowsResponse.CellChunk.Builder chunk =
          message
              .addChunksBuilder()
              .setQualifier(BytesValue.of(ByteString.copyFromUtf8("q" + i)))
              .setTimestampMicros(1_700_000_000_000_000L)
              .setValue(values.get(i));
      if (i == 0) {
        chunk
            .setRowKey(ByteString.copyFromUtf8(key))
            .setFamilyName(StringValue.of(DemoTable.FAMILY));
      }
      if (i == values.size() - 1) {
        chunk.setCommitRow(true);
      }
    }
  }
}
