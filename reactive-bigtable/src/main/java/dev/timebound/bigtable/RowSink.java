package dev.timebound.bigtable;

import com.google.protobuf.ByteString;

/** Takes what a {@link RowMerger} makes, in the order of the read. */
interface RowSink {
  /** A whole row, committed by the server. */
  void row(Row row);

  /** The server has looked at every row up to this key, and has sent all that there are to send. */
  void scanned(ByteString key);
}
