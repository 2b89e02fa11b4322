package dev.timebound.fetch;

/**
 * A transaction whose records a READ_COMMITTED reader has to skip: those of the producer from the
 * offset on, up to its abort marker.
 *
 * @param firstOffset the transaction's first, which may lie before what was read
 */
public record AbortedTransaction(long producerId, long firstOffset) {}
