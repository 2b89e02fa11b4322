package dev.timebound.fetch;

import java.util.List;

/**
 * What a request answers.
 *
 * @param partitions one for each that was asked for, in the order of the request (FE-15)
 */
public record FetchResponse(List<PartitionData> partitions) {
  public FetchResponse {
    partitions = List.copyOf(partitions);
  }

  /**
   * The answer of one partition.
   *
   * @throws IllegalArgumentException where it was not asked for
   */
  public PartitionData partition(TopicPartition partition) {
    for (PartitionData data : partitions) {
      if (data.partition().equals(partition)) {
        return data;
      }
    }
    throw Settings.refused("partition", partition, "one of the request");
  }

  /** The sum over all partitions. */
  public long sizeInBytes() {
    return partitions.stream().mapToLong(PartitionData::sizeInBytes).sum();
  }
}
