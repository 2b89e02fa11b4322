package dev.timebound.bigtable;

import com.google.protobuf.ByteString;

/**
 * The server's stream of cell chunks broke the rules by which rows are put together. Rows delivered
 * before it are whole and right; of the row it names nothing was delivered.
 */
public final class InvalidChunkStreamException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final ChunkFault fault;
  private final ByteString rowKey;

  InvalidChunkStreamException(ChunkFault fault, ByteString rowKey, long rows) {
    super(
        "invalid chunk stream: "
            + fault.text
            + (rowKey.isEmpty() ? "" : ", row " + Keys.show(rowKey))
            + ", after "
            + rows
            + " whole rows");
    this.fault = fault;
    this.rowKey = rowKey;
  }

  /** The row (or scan marker) the fault was found at; empty where it had no key. */
  public ByteString rowKey() {
    return rowKey;
  }

  ChunkFault fault() {
    return fault;
  }
}
