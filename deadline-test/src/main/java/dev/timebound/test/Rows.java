package dev.timebound.test;

import com.google.bigtable.v2.ReadRowsResponse;
import com.google.bigtable.v2.ReadRowsResponse.CellChunk;
import com.google.protobuf.ByteString;
import com.google.protobuf.BytesValue;
import com.google.protobuf.StringValue;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Makes the messages of ReadRows as a server sends them: whole rows, parts of rows, markers. Family
 * {@code cf}, timestamp 0.
 */
public final class Rows {
  private static final String FAMILY = "cf";

  private Rows() {}

  /** A whole row of one cell, {@code cf:q}. */
  public static CellChunk row(String key, String value) {
    return row(key, ByteString.copyFromUtf8(value));
  }

  /** A whole row of one cell, {@code cf:q}. */
  public static CellChunk row(String key, ByteString value) {
    return first(key).setValue(value).setCommitRow(true).build();
  }

  /** A whole row of several cells {@code cf:q0}, {@code cf:q1}, …, each of that many bytes. */
  public static List<CellChunk> wideRow(String key, int cells, int bytesPerCell) {
    ByteString value = ByteString.copyFrom(new byte[bytesPerCell]);
    List<CellChunk> chunks = new ArrayList<>(cells);
    for (int i = 0; i < cells; i++) {
      CellChunk.Builder chunk = i == 0 ? first(key) : CellChunk.newBuilder();
      chunks.add(
          chunk
              .setQualifier(BytesValue.of(ByteString.copyFromUtf8("q" + i)))
              .setValue(value)
              .setCommitRow(i == cells - 1)
              .build());
    }
    return chunks;
  }

  /** A whole row of one cell whose value comes in pieces of that many bytes at most. */
  public static List<CellChunk> splitRow(String key, ByteString value, int bytesPerChunk) {
    List<CellChunk> chunks = new ArrayList<>();
    for (int from = 0; from == 0 || from < value.size(); from += bytesPerChunk) {
      int to = Math.min(value.size(), from + bytesPerChunk);
      boolean last = to == value.size();
      CellChunk.Builder chunk = from == 0 ? first(key) : CellChunk.newBuilder();
      chunks.add(
          chunk
              .setValue(value.substring(from, to))
              .setValueSize(last ? 0 : value.size())
              .setCommitRow(last)
              .build());
    }
    return chunks;
  }

  /** A row of one cell that is begun and not committed. */
  public static CellChunk begun(String key, String value) {
    return first(key).setValue(ByteString.copyFromUtf8(value)).build();
  }

  /** Takes back the row that was begun. */
  public static CellChunk reset() {
    return CellChunk.newBuilder().setResetRow(true).build();
  }

  /** One message of these chunks. */
  public static ReadRowsResponse message(CellChunk... chunks) {
    return message(Arrays.asList(chunks));
  }

  /** One message of these chunks. */
  public static ReadRowsResponse message(List<CellChunk> chunks) {
    return ReadRowsResponse.newBuilder().addAllChunks(chunks).build();
  }

  /** One message of one whole row a key; each row's value is its key. */
  public static ReadRowsResponse message(String... keys) {
    return message(Arrays.stream(keys).map(key -> row(key, key)).toList());
  }

  /** A scan marker: everything up to and with that key was looked at. */
  public static ReadRowsResponse marker(String key) {
    return ReadRowsResponse.newBuilder().setLastScannedRowKey(ByteString.copyFromUtf8(key)).build();
  }

  private static CellChunk.Builder first(String key) {
    return CellChunk.newBuilder()
        .setRowKey(ByteString.copyFromUtf8(key))
        .setFamilyName(StringValue.of(FAMILY))
        .setQualifier(BytesValue.of(ByteString.copyFromUtf8("q")));
  }
}
