package dev.timebound.fetch;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A Fetch of several partitions. Immutable.
 *
 * @param maxWait how long the answer may wait for {@code minBytes}, {@code >= 0}
 * @param minBytes over all partitions, {@code >= 0}; 0: every partition is asked once
 * @param maxBytes over all partitions, {@code >= 0}; one first batch may exceed it (FE-13)
 * @param partitions at least one, each partition once
 */
public record FetchRequest(
    Duration maxWait, int minBytes, int maxBytes, Isolation isolation, List<Partition> partitions) {
  /**
   * One partition of a request.
   *
   * @param offset the first that is wanted; any number: one that the partition has not is answered
   *     as out of range
   * @param maxBytes of this partition, {@code >= 0}
   */
  public record Partition(TopicPartition partition, long offset, int maxBytes) {
    public Partition {
      Objects.requireNonNull(partition, "partition");
      Settings.atLeast("partitionMaxBytes", maxBytes, 0);
    }
  }

  public FetchRequest {
    Settings.notNegative("maxWait", maxWait);
    Settings.atLeast("minBytes", minBytes, 0);
    Settings.atLeast("maxBytes", maxBytes, 0);
    Objects.requireNonNull(isolation, "isolation");
    partitions = List.copyOf(partitions);
    if (partitions.isEmpty()) {
      throw Settings.refused("partitions", partitions, "at least one");
    }
    Map<TopicPartition, Partition> seen = new LinkedHashMap<>();
    for (Partition p : partitions) {
      if (seen.put(p.partition(), p) != null) {
        throw Settings.refused("partitions", p.partition() + " twice", "each once");
      }
    }
  }

  public static Builder builder() {
    return new Builder();
  }

  /** Not thread-safe. */
  public static final class Builder {
    static final Duration MAX_WAIT = Duration.ofMillis(500);
    static final int MIN_BYTES = 1;
    static final int MAX_BYTES = 50 * 1024 * 1024;
    static final int PARTITION_MAX_BYTES = 1024 * 1024;

    private final Map<TopicPartition, Partition> partitions = new LinkedHashMap<>();
    private Duration maxWait = MAX_WAIT;
    private int minBytes = MIN_BYTES;
    private int maxBytes = MAX_BYTES;
    private Isolation isolation = Isolation.READ_UNCOMMITTED;

    private Builder() {}

    /** How long to wait for {@link #minBytes}, {@code >= 0}. Default 500 ms. */
    public Builder maxWait(Duration time) {
      maxWait = Settings.notNegative("maxWait", time);
      return this;
    }

    /** {@code >= 0}, over all partitions. Default {@value #MIN_BYTES}. */
    public Builder minBytes(int bytes) {
      minBytes = Settings.atLeast("minBytes", bytes, 0);
      return this;
    }

    /** {@code >= 0}, over all partitions. Default {@value #MAX_BYTES}. */
    public Builder maxBytes(int bytes) {
      maxBytes = Settings.atLeast("maxBytes", bytes, 0);
      return this;
    }

    /** Default READ_UNCOMMITTED. */
    public Builder isolation(Isolation level) {
      isolation = Objects.requireNonNull(level, "isolation");
      return this;
    }

    /** One more partition, with at most {@value #PARTITION_MAX_BYTES} bytes of it. */
    public Builder partition(TopicPartition partition, long offset) {
      return partition(partition, offset, PARTITION_MAX_BYTES);
    }

    /**
     * One more partition.
     *
     * @throws IllegalArgumentException where it is there already
     */
    public Builder partition(TopicPartition partition, long offset, int partitionMaxBytes) {
      if (partitions.putIfAbsent(partition, new Partition(partition, offset, partitionMaxBytes))
          != null) {
        throw Settings.refused("partitions", partition + " twice", "each once");
      }
      return this;
    }

    public FetchRequest build() {
      return new FetchRequest(
          maxWait, minBytes, maxBytes, isolation, List.copyOf(partitions.values()));
    }
  }
}
