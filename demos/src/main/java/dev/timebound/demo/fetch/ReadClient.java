package dev.timebound.demo.fetch;

/** An unchanged Kafka client that reads all partitions from their beginning until it is closed. */
interface ReadClient extends AutoCloseable {
  /** Settings that all clients get: as long as most have it, and one stored batch a partition. */
  int MAX_WAIT_MILLIS = 500;

  int PARTITION_FETCH_BYTES = Backlog.BATCH_BYTES;

  /** Why it reads no more though it was not closed; empty where it goes on. */
  String failure();

  /** Ends it; when this returns it has gone, and counts nothing any more. */
  @Override
  void close() throws InterruptedException;
}
