package dev.timebound.bigtable;

import com.google.protobuf.ByteString;
import java.util.List;

/**
 * One version of one column of a row. Immutable.
 *
 * @param family the column family's name
 * @param qualifier the column within its family; may be empty
 * @param timestampMicros the version, in microseconds
 * @param value what is stored; empty where the filter stripped it
 * @param labels those the filter gave the cell; mostly none
 */
public record Cell(
    String family,
    ByteString qualifier,
    long timestampMicros,
    ByteString value,
    List<String> labels) {

  public Cell {
    labels = List.copyOf(labels);
  }

  /** A cell without labels. */
  public Cell(String family, ByteString qualifier, long timestampMicros, ByteString value) {
    this(family, qualifier, timestampMicros, value, List.of());
  }
}
