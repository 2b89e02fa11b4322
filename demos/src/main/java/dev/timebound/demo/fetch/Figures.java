package dev.timebound.demo.fetch;

import java.util.List;

/**
 * What one client of one run came to. All of it up to the lifting of the stall, but for what its
 * own words say.
 *
 * @param received records of each partition
 * @param healthyPerSecond records of healthy partitions, after the warm-up
 * @param rounds its Fetches
 * @param abandoned reads that the fetcher gave up, as its meter has it
 * @param cancelled statements that the server cancelled for it
 * @param leftRunning statements that ran on the server for longer than any read may take, before
 *     the stall was lifted, or were there after the end; the worse of the two
 * @param stalledAtEnd records of partition 0 at the end, some time after the lifting
 * @param lost records passed over, of all partitions, to the end
 * @param doubled records that came twice, of all partitions, to the end
 * @param failure of the client; empty where there was none
 */
record Figures(
    List<Long> received,
    double healthyPerSecond,
    Rounds.Figures rounds,
    long abandoned,
    long cancelled,
    long leftRunning,
    long stalledAtEnd,
    long lost,
    long doubled,
    String failure) {
  Figures {
    received = List.copyOf(received);
  }

  /** Records of healthy partitions. */
  long healthy() {
    long sum = 0;
    for (int partition = 0; partition < received.size(); partition++) {
      sum += Backlog.isHealthy(partition) ? received.get(partition) : 0;
    }
    return sum;
  }
}
