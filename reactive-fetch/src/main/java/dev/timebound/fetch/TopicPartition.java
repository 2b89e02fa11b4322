package dev.timebound.fetch;

/**
 * One partition of a topic.
 *
 * @param topic not blank
 * @param partition {@code >= 0}
 */
public record TopicPartition(String topic, int partition) {
  public TopicPartition {
    Settings.name("topic", topic);
    Settings.atLeast("partition", partition, 0);
  }

  /** As in {@code orders-3}. */
  @Override
  public String toString() {
    return topic + "-" + partition;
  }
}
