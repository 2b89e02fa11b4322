package dev.timebound.demo.fetch;

/** One client of one run, and what serves it. */
interface Side extends AutoCloseable {
  Client client();

  /** The client begins to read. */
  void start() throws Exception;

  Account account();

  Rounds rounds();

  /** Reads that its fetcher has given up. */
  long abandoned();

  /** Why the client reads no more; empty where it does. */
  String failure();

  /** Ends the client, and then what serves it. */
  @Override
  void close() throws Exception;
}
