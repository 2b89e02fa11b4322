package dev.timebound.demo.fetch;

/**
 * Adds up what one client received: how much of each partition, and whether every record came, in
 * order and once. Thread-safe.
 */
final class Account {
  private final long[] received = new long[Backlog.PARTITIONS];
  private final long[] next = new long[Backlog.PARTITIONS];
  private final long[] marked = new long[Backlog.PARTITIONS];
  private long lost;
  private long doubled;

  /** A record has come; numbers of a partition begin with 0. */
  synchronized void received(int partition, long number) {
    received[partition]++;
    if (number < next[partition]) {
      doubled++;
    } else {
      lost += number - next[partition];
      next[partition] = number + 1;
    }
  }

  /** Speed is counted from now on. */
  synchronized void mark() {
    System.arraycopy(received, 0, marked, 0, received.length);
  }

  synchronized long received(int partition) {
    return received[partition];
  }

  /** Of the healthy partitions. */
  synchronized long healthy() {
    return healthy(received);
  }

  /** Of the healthy partitions, since {@link #mark}. */
  synchronized long healthySinceMark() {
    return healthy(received) - healthy(marked);
  }

  /** Records that were passed over, of all partitions. */
  synchronized long lost() {
    return lost;
  }

  /** Records that came once more, or after a later one, of all partitions. */
  synchronized long doubled() {
    return doubled;
  }

  private static long healthy(long[] of) {
    long sum = 0;
    for (int partition = 0; partition < of.length; partition++) {
      sum += Backlog.isHealthy(partition) ? of[partition] : 0;
    }
    return sum;
  }
}
