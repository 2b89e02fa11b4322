package dev.timebound.bigtable;

import com.google.protobuf.ByteString;
import java.util.function.Consumer;

/** Opens the row merger, which no user touches, to the benchmarks. */
public final class MergerUnderTest implements RowSink {
  private final RowMerger merger = new RowMerger(false, null);
  private final Consumer<Row> rows;

  public MergerUnderTest(Consumer<Row> rows) {
    this.rows = rows;
  }

  public void push(byte[] message) {
    merger.push(message, message.length, this);
  }

  public void end() {
    merger.end();
  }

  @Override
  public void row(Row row) {
    rows.accept(row);
  }

  @Override
  public void scanned(ByteString key) {}
}
