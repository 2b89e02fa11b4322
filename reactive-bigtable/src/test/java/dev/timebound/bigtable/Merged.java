package dev.timebound.bigtable;

import com.google.bigtable.v2.ReadRowsResponse;
import com.google.protobuf.ByteString;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What our merger makes of a whole stream. */
final class Merged implements RowSink {
  final List<Row> rows = new ArrayList<>();

  /** Rows as they are, scan markers as rows without a cell. */
  final List<Row> all = new ArrayList<>();

  @Nullable InvalidChunkStreamException error;

  /** As it may come, in an array that is longer; and read over at once, as by the next. */
  static void push(RowMerger merger, byte[] message, RowSink sink) {
    byte[] longer = Arrays.copyOf(message, message.length + 7);
    Arrays.fill(longer, message.length, longer.length, (byte) 0x0a); // tag of a chunk
    try {
      merger.push(longer, message.length, sink);
    } finally {
      Arrays.fill(longer, (byte) 0xff);
    }
  }

  static Merged of(List<ReadRowsResponse> stream, boolean reversed) {
    Merged merged = new Merged();
    RowMerger merger = new RowMerger(reversed, null);
    try {
      for (ReadRowsResponse message : stream) {
        push(merger, message.toByteArray(), merged);
      }
      merger.end();
    } catch (InvalidChunkStreamException e) {
      merged.error = e;
    }
    return merged;
  }

  static Merged of(ReadRowsResponse... stream) {
    return of(List.of(stream), false);
  }

  @Nullable ChunkFault fault() {
    return error == null ? null : error.fault();
  }

  @Override
  public void row(Row row) {
    rows.add(row);
    all.add(row);
  }

  @Override
  public void scanned(ByteString key) {
    all.add(Row.of(key, List.of()));
  }
}
