package dev.timebound.demo.fetch;

/**
 * What stands in the topic: records that carry their number in their partition, which is their
 * offset too.
 *
 * @param stalledRecords of partition 0, which stalls: few, so that all of it is soon read
 *     afterwards
 * @param healthyRecords of each of the others: more than is read while it is measured
 */
record Backlog(int stalledRecords, int healthyRecords) {
  static final String TOPIC = "demo";
  static final int PARTITIONS = 3;
  static final int STALLED = 0;

  /** Of a record's value. */
  static final int RECORD_BYTES = 1_024;

  /** As the producer sends them. */
  static final int BATCH_BYTES = 32 * 1_024;

  int records(int partition) {
    return partition == STALLED ? stalledRecords : healthyRecords;
  }

  static boolean isHealthy(int partition) {
    return partition != STALLED;
  }
}
