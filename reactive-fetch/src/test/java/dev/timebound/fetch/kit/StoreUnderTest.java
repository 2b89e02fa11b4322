package dev.timebound.fetch.kit;

import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.TopicPartition;
import java.nio.ByteBuffer;
import java.time.Duration;

/** What the contract's tests need to do to a store; may block. */
public interface StoreUnderTest extends AutoCloseable {
  PartitionStore store();

  /** A new, empty partition. */
  TopicPartition newPartition();

  /**
   * Appends one batch, visible when this returns.
   *
   * @return its base offset
   */
  long append(TopicPartition partition, ByteBuffer bytes, int records, long maxTimestamp);

  /** Whether the store knows transactions. */
  default boolean hasTransactions() {
    return false;
  }

  /** Appends one batch of a producer's transaction, which the first one opens. */
  default long appendTransactional(
      TopicPartition partition, long producerId, ByteBuffer bytes, int records) {
    throw new UnsupportedOperationException("hasTransactions");
  }

  /** Ends it by a marker, which takes one offset; returns the marker's offset. */
  default long endTransaction(TopicPartition partition, long producerId, boolean commit) {
    throw new UnsupportedOperationException("hasTransactions");
  }

  /** Whether old records can be deleted. */
  default boolean hasRetention() {
    return false;
  }

  /** Moves the start of the partition up to the offset. */
  default void deleteBefore(TopicPartition partition, long offset) {
    throw new UnsupportedOperationException("hasRetention");
  }

  /** Whether the store's reads can be made to stall. */
  default boolean canStall() {
    return false;
  }

  /** From now on no read of the partition's records is answered, until {@link #thaw}. */
  default void stall(TopicPartition partition) {
    throw new UnsupportedOperationException("canStall");
  }

  /** Ends the stall. */
  default void thaw(TopicPartition partition) {
    throw new UnsupportedOperationException("canStall");
  }

  /**
   * How long a request may wait for four batches; more than 500 ms where each is fetched by itself.
   */
  default Duration maxWait() {
    return Duration.ofMillis(500);
  }

  /** How long a call may take, or what it held be held, at most: a store that hangs reaches it. */
  default Duration longest() {
    return Duration.ofSeconds(30);
  }

  /** Reads that hold something of the store's: a connection, a file, a permit. */
  default int held() {
    return 0;
  }

  @Override
  void close();
}
