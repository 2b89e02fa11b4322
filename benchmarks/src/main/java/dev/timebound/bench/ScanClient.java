package dev.timebound.bench;

/** One way to read a whole table, again and again. */
interface ScanClient extends AutoCloseable {

  /**
   * Reads the table once and begins anew when it ends, for ever; returns at once. What goes wrong
   * goes to {@code failed}.
   */
  void scanForEver(RowCount count, Failed failed);

  @Override
  void close() throws Exception;

  /** Where a scan that failed is told. */
  @FunctionalInterface
  interface Failed {
    void because(Throwable error);
  }
}
