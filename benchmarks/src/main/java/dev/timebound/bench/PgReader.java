package dev.timebound.bench;

/** One way to read one row in a read-only transaction, one read after the other. */
interface PgReader extends AutoCloseable {
  /** Its row, by which it is shown that it did it. */
  String SELECT = "SELECT body FROM demo_rows WHERE id = ";

  /** Reads one row; returns when the caller has its answer. */
  String read(int id) throws Exception;

  @Override
  void close();
}
