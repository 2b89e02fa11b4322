package dev.timebound.pg;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import reactor.core.publisher.Mono;
import reactor.pool.AllocationStrategy;

/*
 * How connections come into reactor-pool. Left to itself it dials for one borrower at a time, within
 * that borrower's wait and Context, and has the borrower wait for that dial and no other connection.
 * Here it never dials: what was dialled is laid down here, and the pool's warmup, for which alone
 * there are permits, takes it into its idle ones at once. Who may dial how much is the reader pool's
 * to say; permits that come back mean nothing, so that none can be lost.
 */
final class Handover implements AllocationStrategy {
  private final Queue<ReaderConnection> laidDown = new ConcurrentLinkedQueue<>();
  private final int max;

  Handover(int max) {
    this.max = max;
  }

  /** For the pool's allocator: what was laid down, or nothing. */
  Mono<ReaderConnection> take() {
    return Mono.fromSupplier(laidDown::poll);
  }

  void layDown(ReaderConnection connection) {
    laidDown.add(connection);
  }

  @Override
  public int getPermits(int desired) {
    return desired == 0 ? laidDown.size() : 0;
  }

  @Override
  public void returnPermits(int returned) {
    // they were not counted
  }

  @Override
  public int estimatePermitCount() {
    return 0;
  }

  @Override
  public int permitGranted() {
    return 0;
  }

  @Override
  public int permitMinimum() {
    return 1; // without it a pool does not warm up
  }

  @Override
  public int permitMaximum() {
    return max;
  }
}
