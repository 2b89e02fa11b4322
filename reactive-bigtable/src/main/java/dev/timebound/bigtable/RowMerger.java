package dev.timebound.bigtable;

import com.google.bigtable.v2.ReadRowsResponse;
import com.google.bigtable.v2.ReadRowsResponse.CellChunk;
import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Puts the rows of one attempt together from the chunks the server sends. A broken stream ends in
 * {@link InvalidChunkStreamException}, never in a wrong row; rows that were whole before the fault
 * have gone to the sink, those of the same message too. After that exception the merger refuses all
 * further input.
 *
 * <p>Allocates a row, its cells and nothing else per row. Belongs to one attempt; not thread-safe.
 */
final class RowMerger {
  /** A row wider than this does not make the merger hold an array of its width afterwards. */
  private static final int KEPT_CELLS = 1024;

  private final boolean reversed;

  /** Key of the last row or scan marker; all that follow lie past it. Null before the first. */
  private @Nullable ByteString last;

  private long rows;
  private boolean broken;

  // the row under way
  private @Nullable ByteString rowKey;
  private String family = "";
  private ByteString qualifier = ByteString.EMPTY;
  private Cell[] cells = new Cell[16];
  private int cellCount;

  // the split value under way: announced is 0 where there is none
  private int announced;
  private int gathered;
  private long timestamp;
  private List<String> labels = List.of();
  private final List<ByteString> pieces = new ArrayList<>();

  /**
   * A merger for one attempt.
   *
   * @param reversed whether keys must descend
   * @param resumedAfter the key past which this attempt was asked to read; null for a first attempt
   */
  RowMerger(boolean reversed, @Nullable ByteString resumedAfter) {
    this.reversed = reversed;
    this.last = resumedAfter;
  }

  /** Takes the next message; calls the sink for each row that it completes, in order. */
  void push(ReadRowsResponse response, RowSink sink) {
    if (broken) {
      throw new IllegalStateException("the stream was broken already");
    }
    ByteString scanned = response.getLastScannedRowKey();
    if (!scanned.isEmpty()) {
      marker(scanned, sink);
    }
    int n = response.getChunksCount();
    for (int i = 0; i < n; i++) {
      chunk(response.getChunks(i), sink);
    }
  }

  /** The server ended the stream in order: no row may be under way. */
  void end() {
    if (rowKey != null) {
      throw fault(ChunkFault.END_IN_ROW, rowKey);
    }
  }

  /** Whether a row has begun that the server has not committed yet. */
  boolean isRowUnderWay() {
    return rowKey != null;
  }

  private void marker(ByteString key, RowSink sink) {
    if (rowKey != null) {
      throw fault(ChunkFault.MARKER_IN_ROW, rowKey);
    }
    if (!isPastLast(key)) {
      throw fault(ChunkFault.MARKER_OUT_OF_ORDER, key);
    }
    last = key;
    sink.scanned(key);
  }

  private void chunk(CellChunk chunk, RowSink sink) {
    if (chunk.getResetRow()) {
      reset(chunk);
      return;
    }
    ByteString key = rowKey;
    if (key == null) {
      key = begin(chunk);
    } else {
      ByteString named = chunk.getRowKey();
      if (!named.isEmpty() && !named.equals(key)) {
        throw fault(ChunkFault.OTHER_ROW, key);
      }
    }
    if (announced == 0) {
      cell(chunk, key);
    } else {
      piece(chunk, key);
    }
    if (chunk.getCommitRow()) {
      if (announced != 0) {
        throw fault(ChunkFault.COMMIT_IN_VALUE, key);
      }
      commit(key, sink);
    }
  }

  private ByteString begin(CellChunk chunk) {
    ByteString key = chunk.getRowKey();
    if (key.isEmpty()) {
      throw fault(ChunkFault.NO_ROW_KEY, key);
    }
    if (!chunk.hasFamilyName()) {
      throw fault(ChunkFault.NO_FAMILY, key);
    }
    if (!isPastLast(key)) {
      throw fault(ChunkFault.KEY_OUT_OF_ORDER, key);
    }
    rowKey = key;
    return key;
  }

  private void cell(CellChunk chunk, ByteString key) {
    if (chunk.hasFamilyName()) {
      if (!chunk.hasQualifier()) {
        throw fault(ChunkFault.NO_QUALIFIER, key);
      }
      family = chunk.getFamilyName().getValue();
    }
    if (chunk.hasQualifier()) {
      qualifier = chunk.getQualifier().getValue();
    }
    int size = chunk.getValueSize();
    if (size == 0) {
      List<String> labels =
          chunk.getLabelsCount() == 0 ? List.of() : List.copyOf(chunk.getLabelsList());
      add(new Cell(family, qualifier, chunk.getTimestampMicros(), chunk.getValue(), labels));
      return;
    }
    ByteString value = chunk.getValue();
    if (size < 0) {
      throw fault(ChunkFault.NEGATIVE_VALUE_SIZE, key);
    }
    if (value.isEmpty()) {
      throw fault(ChunkFault.EMPTY_FIRST_PIECE, key);
    }
    announced = size;
    timestamp = chunk.getTimestampMicros();
    labels = List.copyOf(chunk.getLabelsList());
    gather(value, key);
  }

  private void piece(CellChunk chunk, ByteString key) {
    if (chunk.hasFamilyName()
        || chunk.hasQualifier()
        || chunk.getTimestampMicros() != 0
        || chunk.getLabelsCount() != 0) {
      throw fault(ChunkFault.CELL_IN_VALUE, key);
    }
    int size = chunk.getValueSize();
    if (size != 0 && size != announced) {
      throw fault(ChunkFault.VALUE_SIZE_CHANGED, key);
    }
    gather(chunk.getValue(), key);
    if (size == 0) {
      if (gathered != announced) {
        throw fault(ChunkFault.VALUE_TOO_SHORT, key);
      }
      add(new Cell(family, qualifier, timestamp, join(), labels));
      dropPieces();
    }
  }

  private void gather(ByteString value, ByteString key) {
    if (value.size() > announced - gathered) {
      throw fault(ChunkFault.VALUE_TOO_LONG, key);
    }
    gathered += value.size();
    if (!value.isEmpty()) {
      pieces.add(value);
    }
  }

  /** Sized by what came in, never by what was only announced. */
  private ByteString join() {
    byte[] whole = new byte[gathered];
    int at = 0;
    for (ByteString piece : pieces) {
      piece.copyTo(whole, at);
      at += piece.size();
    }
    return UnsafeByteOperations.unsafeWrap(whole);
  }

  private void add(Cell cell) {
    if (cellCount == cells.length) {
      cells = Arrays.copyOf(cells, cellCount * 2);
    }
    cells[cellCount++] = cell;
  }

  private void commit(ByteString key, RowSink sink) {
    Row row = new Row(key, Arrays.copyOf(cells, cellCount));
    last = key;
    rows++;
    dropRow();
    sink.row(row);
  }

  private void reset(CellChunk chunk) {
    ByteString key = rowKey;
    if (key == null) {
      throw fault(ChunkFault.RESET_WITHOUT_ROW, chunk.getRowKey());
    }
    if (!chunk.getRowKey().isEmpty()
        || chunk.hasFamilyName()
        || chunk.hasQualifier()
        || chunk.getTimestampMicros() != 0
        || chunk.getLabelsCount() != 0
        || chunk.getValueSize() != 0
        || !chunk.getValue().isEmpty()) {
      throw fault(ChunkFault.RESET_WITH_DATA, key);
    }
    dropRow();
  }

  private void dropRow() {
    rowKey = null;
    if (cells.length > KEPT_CELLS) {
      cells = new Cell[KEPT_CELLS];
    } else {
      Arrays.fill(cells, 0, cellCount, null);
    }
    cellCount = 0;
    if (announced != 0) {
      dropPieces();
    }
  }

  private void dropPieces() {
    announced = 0;
    gathered = 0;
    labels = List.of();
    pieces.clear();
  }

  private boolean isPastLast(ByteString key) {
    ByteString before = last;
    if (before == null) {
      return true;
    }
    int c = Keys.compare(key, before);
    return reversed ? c < 0 : c > 0;
  }

  private InvalidChunkStreamException fault(ChunkFault fault, ByteString key) {
    broken = true;
    dropRow();
    return new InvalidChunkStreamException(fault, key, rows);
  }
}
