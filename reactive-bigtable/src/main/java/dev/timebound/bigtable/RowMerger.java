package dev.timebound.bigtable;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnsafeByteOperations;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Puts the rows of one attempt together from the chunks the server sends, read straight from the
 * bytes of each message. A broken stream ends in {@link InvalidChunkStreamException}, never in a
 * wrong row; rows that were whole before the fault have gone to the sink, those of the same message
 * too. After that exception the merger refuses all further input.
 *
 * <p>Allocates a row, its cells, its key's and values' bytes, and nothing else per row where rows
 * have the same columns. Belongs to one attempt; not thread-safe.
 */
final class RowMerger {
  /** A row wider than this does not make the merger hold an array of its width afterwards. */
  private static final int KEPT_CELLS = 1024;

  private static final byte[] NOTHING = {};

  private final boolean reversed;

  /** Key of the last row or scan marker; all that follow lie past it. Null before the first. */
  private byte @Nullable [] last;

  private long rows;
  private boolean broken;
  private final ChunkCursor chunk = new ChunkCursor();
  private final Names<String> families = new Names<>(ChunkCursor::text);
  private final Names<ByteString> qualifiers = new Names<>(UnsafeByteOperations::unsafeWrap);

  // the row under way: none where its key is null
  private byte @Nullable [] rowKey;
  private String family = "";
  private ByteString qualifier = ByteString.EMPTY;
  private Cell[] cells = new Cell[4];
  private int cellCount;

  // the split value under way: announced is 0 where there is none
  private int announced;
  private int gathered;
  private byte[] pieces = NOTHING;
  private long timestamp;
  private List<String> labels = List.of();

  /**
   * A merger for one attempt.
   *
   * @param reversed whether keys must descend
   * @param resumedAfter the key past which this attempt was asked to read; null for a first attempt
   */
  RowMerger(boolean reversed, @Nullable ByteString resumedAfter) {
    this.reversed = reversed;
    this.last = resumedAfter == null ? null : resumedAfter.toByteArray();
  }

  /**
   * Takes the next message; calls the sink for each row that it completes, in order.
   *
   * @param message a ReadRowsResponse as it came; not held on to
   * @param length how much of the array it is
   */
  void push(byte[] message, int length, RowSink sink) {
    if (broken) {
      throw new IllegalStateException("the stream was broken already");
    }
    try {
      chunk.open(message, length);
      if (!chunk.scanned.isEmpty()) {
        marker(sink);
      }
      while (chunk.next()) {
        merge(sink);
      }
      chunk.close();
    } catch (InvalidProtocolBufferException e) {
      InvalidChunkStreamException fault = fault(ChunkFault.MALFORMED, rowKey);
      fault.initCause(e);
      throw fault;
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

  private void marker(RowSink sink) {
    byte[] key = chunk.scanned.copy();
    if (rowKey != null) {
      throw fault(ChunkFault.MARKER_IN_ROW, rowKey);
    }
    if (!isPastLast(chunk.scanned)) {
      throw fault(ChunkFault.MARKER_OUT_OF_ORDER, key);
    }
    last = key;
    sink.scanned(UnsafeByteOperations.unsafeWrap(key));
  }

  private void merge(RowSink sink) throws InvalidProtocolBufferException {
    if (chunk.reset) {
      reset();
      return;
    }
    byte[] key = rowKey;
    if (key == null) {
      key = begin();
    } else if (!chunk.rowKey.isEmpty() && !chunk.rowKey.isEqualTo(key)) {
      throw fault(ChunkFault.OTHER_ROW, key);
    }
    if (announced == 0) {
      cell(key);
    } else {
      piece(key);
    }
    if (chunk.commit) {
      if (announced != 0) {
        throw fault(ChunkFault.COMMIT_IN_VALUE, key);
      }
      commit(key, sink);
    }
  }

  private byte[] begin() {
    if (chunk.rowKey.isEmpty()) {
      throw fault(ChunkFault.NO_ROW_KEY, null);
    }
    byte[] key = chunk.rowKey.copy();
    if (!chunk.hasFamily) {
      throw fault(ChunkFault.NO_FAMILY, key);
    }
    if (!isPastLast(chunk.rowKey)) {
      throw fault(ChunkFault.KEY_OUT_OF_ORDER, key);
    }
    rowKey = key;
    return key;
  }

  private void cell(byte[] key) throws InvalidProtocolBufferException {
    if (chunk.hasFamily) {
      if (!chunk.hasQualifier) {
        throw fault(ChunkFault.NO_QUALIFIER, key);
      }
      family = families.at(cellCount, chunk.family);
    }
    if (chunk.hasQualifier) {
      qualifier = qualifiers.at(cellCount, chunk.qualifier);
    }
    int size = chunk.valueSize;
    if (size == 0) {
      add(
          new Cell(
              family,
              qualifier,
              chunk.timestampMicros,
              chunk.value.copyToByteString(),
              chunk.labels));
      return;
    }
    if (size < 0) {
      throw fault(ChunkFault.NEGATIVE_VALUE_SIZE, key);
    }
    if (chunk.value.isEmpty()) {
      throw fault(ChunkFault.EMPTY_FIRST_PIECE, key);
    }
    announced = size;
    timestamp = chunk.timestampMicros;
    labels = chunk.labels;
    gather(key);
  }

  private void piece(byte[] key) {
    if (chunk.hasFamily
        || chunk.hasQualifier
        || chunk.timestampMicros != 0
        || !chunk.labels.isEmpty()) {
      throw fault(ChunkFault.CELL_IN_VALUE, key);
    }
    int size = chunk.valueSize;
    if (size != 0 && size != announced) {
      throw fault(ChunkFault.VALUE_SIZE_CHANGED, key);
    }
    gather(key);
    if (size == 0) {
      if (gathered != announced) {
        throw fault(ChunkFault.VALUE_TOO_SHORT, key);
      }
      byte[] whole = gathered == pieces.length ? pieces : Arrays.copyOf(pieces, gathered);
      add(new Cell(family, qualifier, timestamp, UnsafeByteOperations.unsafeWrap(whole), labels));
      dropPieces();
    }
  }

  /** Makes room by what has come in, never by what was only announced. */
  private void gather(byte[] key) {
    int more = chunk.value.length();
    if (more > announced - gathered) {
      throw fault(ChunkFault.VALUE_TOO_LONG, key);
    }
    int total = gathered + more;
    if (total > pieces.length) {
      pieces = Arrays.copyOf(pieces, (int) Math.min(announced, 2L * total));
    }
    chunk.value.copyTo(pieces, gathered);
    gathered = total;
  }

  private void add(Cell cell) {
    if (cellCount == cells.length) {
      cells = Arrays.copyOf(cells, cellCount * 2);
    }
    cells[cellCount++] = cell;
  }

  private void commit(byte[] key, RowSink sink) {
    Row row = new Row(UnsafeByteOperations.unsafeWrap(key), Arrays.copyOf(cells, cellCount));
    last = key;
    rows++;
    dropRow();
    sink.row(row);
  }

  private void reset() {
    byte[] key = rowKey;
    if (key == null) {
      throw fault(ChunkFault.RESET_WITHOUT_ROW, chunk.rowKey.copy());
    }
    if (!chunk.rowKey.isEmpty()
        || chunk.hasFamily
        || chunk.hasQualifier
        || chunk.timestampMicros != 0
        || !chunk.labels.isEmpty()
        || chunk.valueSize != 0
        || !chunk.value.isEmpty()) {
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
    dropPieces();
  }

  private void dropPieces() {
    announced = 0;
    gathered = 0;
    pieces = NOTHING;
    labels = List.of();
  }

  private boolean isPastLast(Span key) {
    byte[] before = last;
    if (before == null) {
      return true;
    }
    int c = key.compareTo(before);
    return reversed ? c < 0 : c > 0;
  }

  private InvalidChunkStreamException fault(ChunkFault fault, byte @Nullable [] key) {
    broken = true;
    dropRow();
    ByteString named = key == null ? ByteString.EMPTY : ByteString.copyFrom(key);
    return new InvalidChunkStreamException(fault, named, rows);
  }
}
