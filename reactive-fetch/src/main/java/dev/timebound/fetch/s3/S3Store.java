package dev.timebound.fetch.s3;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongFunction;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import software.amazon.awssdk.services.s3.S3AsyncClient;

/**
 * Partitions in S3, as objects that are written once: any number of processes append to those of
 * one bucket, and read them. Thread-safe.
 *
 * <pre>{@code
 * S3Store store = S3Store.builder(client, "bucket").prefix("orders/").build();
 * store.createTopic("orders", 12)
 *     .then(store.append(new TopicPartition("orders", 0), batch, 3, now))
 *     .subscribe();
 * }</pre>
 *
 * <p>An append is one object, put under the name of its first offset only where there is none of
 * that name, so that no offset is given twice. Appends of a partition that come while one is being
 * written go into the next object together. A read asks for the range of bytes that it needs, and
 * hands each batch on once its last byte has come. Every request is bounded by the deadline in the
 * Context, and ended on its connection by a cancel (FE-22).
 *
 * <p>There are no transactions: the last stable offset is the high watermark. What S3 refuses, and
 * an object that is not as it was written, is an {@link S3StoreException}.
 */
public final class S3Store implements PartitionStore {
  private static final int LONGEST_NAME = 249;

  private final Calls calls;
  private final Keys keys;
  private final Topics topics;
  private final IndexCache indexes;
  private final boolean finishInBackground;
  private final int firstRead;
  private final Appender.AppendSettings appends;
  private final Map<TopicPartition, S3Log> logs = new ConcurrentHashMap<>();
  private final Map<TopicPartition, Appender> appenders = new ConcurrentHashMap<>();

  private S3Store(Builder builder) {
    calls = new Calls(builder.client, builder.bucket, builder.callTimeout);
    keys = new Keys(builder.prefix);
    topics = new Topics(calls, keys);
    indexes = new IndexCache(builder.indexCacheBytes);
    finishInBackground = builder.finishInBackground;
    firstRead = builder.firstReadBytes;
    appends =
        new Appender.AppendSettings(
            UUID.randomUUID().getMostSignificantBits(),
            builder.objectBytes,
            builder.maxWaiting,
            builder.callTimeout,
            builder.scheduler);
  }

  /**
   * @param client stays the caller's to close, as do its connections, credentials and retries
   */
  public static Builder builder(S3AsyncClient client, String bucket) {
    return new Builder(client, bucket);
  }

  /**
   * Makes a topic where there is none of this name. One that is there is not changed.
   *
   * @param topic not blank; 249 bytes at most, of which each that is no letter, digit, hyphen,
   *     underscore or dot counts three times
   * @param partitions {@code >= 1}
   * @return the number of partitions it has, which is another where it was there before
   */
  public Mono<Integer> createTopic(String topic, int partitions) {
    if (topic.isBlank() || Keys.escaped(topic).length() > LONGEST_NAME) {
      throw refused("topic", "'" + topic + "'", "not blank, at most 249 bytes in a key");
    }
    atLeast("partitions", partitions, 1);
    return topics.create(topic, partitions);
  }

  /**
   * A batch that is to be appended.
   *
   * @param bytes from its base offset; may be asked more than once, where another writer took the
   *     offset, and what it gives must stay as it is until the append has ended
   * @param records how many offsets it takes, {@code >= 1}
   * @param maxTimestamp milliseconds since 1970; −1 for none
   */
  public record NewBatch(LongFunction<ByteBuffer> bytes, int records, long maxTimestamp) {
    public NewBatch {
      Objects.requireNonNull(bytes, "bytes");
      atLeast("records", records, 1);
    }
  }

  /**
   * Appends a batch; readers see it when this completes. Appends of one partition by this store are
   * written in the order of their subscriptions. One that fails in doubt, for want of an answer in
   * time, may have been written all the same. A cancel stops it before its turn, and afterwards the
   * request where no other append is in the same object: it may then have been written too.
   *
   * @param records how many offsets it takes, {@code >= 1}
   * @param maxTimestamp milliseconds since 1970; −1 for none
   * @return its base offset; {@link IllegalArgumentException} where there is no such partition
   */
  public Mono<Long> append(
      TopicPartition partition, ByteBuffer bytes, int records, long maxTimestamp) {
    return append(partition, base -> bytes, records, maxTimestamp);
  }

  /** As before, of a batch whose bytes tell its base offset. */
  public Mono<Long> append(
      TopicPartition partition, LongFunction<ByteBuffer> bytes, int records, long maxTimestamp) {
    return appendAll(partition, List.of(new NewBatch(bytes, records, maxTimestamp)));
  }

  /**
   * Appends batches one after the other, all of them or none, in one object.
   *
   * @param batches one at least
   * @return the base offset of the first
   */
  public Mono<Long> appendAll(TopicPartition partition, List<NewBatch> batches) {
    List<NewBatch> all = List.copyOf(batches);
    if (all.isEmpty()) {
      throw refused("batches", all, "one at least");
    }
    return there(partition).then(Mono.defer(() -> appender(partition).append(all)));
  }

  /**
   * Moves the partition's start up to an offset. Objects that end before it are deleted, save the
   * newest. An offset before the start changes nothing. What is left by one that did not come to
   * its end is deleted by the next one.
   *
   * @return {@link IllegalArgumentException} where the offset lies past the high watermark, or
   *     there is no such partition
   */
  public Mono<Void> deleteBefore(TopicPartition partition, long offset) {
    return there(partition)
        .then(
            Mono.defer(
                () -> new Retention(calls, keys, partition, log(partition)).deleteBefore(offset)));
  }

  private Mono<Void> there(TopicPartition partition) {
    Objects.requireNonNull(partition, "partition");
    return topics
        .exists(partition)
        .flatMap(
            exists ->
                exists
                    ? Mono.empty()
                    : Mono.error(refused("partition", partition, "one that was created")));
  }

  /** One small object for each topic, read once: topics stay as they are. */
  @Override
  public Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked) {
    return topics.existing(asked);
  }

  /** By one listing, and the first bytes of the newest object where those are not known yet. */
  @Override
  public Mono<Offsets> offsets(TopicPartition partition) {
    return Mono.defer(() -> log(partition).offsets());
  }

  /** The budget is looked at between objects. With one that has passed: nothing (FE-4). */
  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    return Flux.defer(() -> log(partition).read(spec, budget));
  }

  /** As exact as batches are: the first offset of the first batch with a record at or after it. */
  @Override
  public Mono<TimestampOffset> offsetFor(
      TopicPartition partition, long timestamp, Isolation isolation) {
    return Mono.defer(() -> log(partition).offsetFor(timestamp));
  }

  @Override
  public boolean finishesInBackground() {
    return finishInBackground;
  }

  /** Bytes of indexes that it keeps. */
  long indexBytes() {
    return indexes.weight();
  }

  private S3Log log(TopicPartition partition) {
    return logs.computeIfAbsent(
        Objects.requireNonNull(partition, "partition"),
        of -> new S3Log(calls, keys, indexes, firstRead, of));
  }

  private Appender appender(TopicPartition partition) {
    return appenders.computeIfAbsent(
        partition, of -> new Appender(calls, keys, log(of), of, appends));
  }

  static IllegalArgumentException refused(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }

  private static int atLeast(String setting, int value, int least) {
    if (value < least) {
      throw refused(setting, value, ">= " + least);
    }
    return value;
  }

  /** Settings of an {@link S3Store}. Not thread-safe. */
  public static final class Builder {
    private static final int LONGEST_PREFIX = 512;
    private static final int LEAST_OBJECT = 1024;
    private static final int MOST_OBJECT = 1 << 30;

    private final S3AsyncClient client;
    private final String bucket;
    private String prefix = "";
    private int objectBytes = 8 << 20;
    private int firstReadBytes = 16 << 10;
    private long indexCacheBytes = 4 << 20;
    private int maxWaiting = 10_000;
    private boolean finishInBackground = true;
    private Duration callTimeout = Duration.ofSeconds(30);
    private Scheduler scheduler = Schedulers.parallel();

    private Builder(S3AsyncClient client, String bucket) {
      this.client = Objects.requireNonNull(client, "client");
      if (Objects.requireNonNull(bucket, "bucket").isBlank()) {
        throw refused("bucket", "'" + bucket + "'", "not blank");
      }
      this.bucket = bucket;
    }

    /** What all keys begin with, 512 characters at most. Default: nothing. */
    public Builder prefix(String prefix) {
      if (prefix.length() > LONGEST_PREFIX) {
        throw refused("prefix", "'" + prefix + "'", "at most 512 characters");
      }
      this.prefix = prefix;
      return this;
    }

    /**
     * Where an object is full that several appends go into, from 1 KiB to 1 GiB. Appends are never
     * parted. Default 8 MiB.
     */
    public Builder objectBytes(int bytes) {
      if (bytes < LEAST_OBJECT || bytes > MOST_OBJECT) {
        throw refused("objectBytes", bytes, LEAST_OBJECT + " to " + MOST_OBJECT);
      }
      this.objectBytes = bytes;
      return this;
    }

    /**
     * How much of an object that is not known yet is fetched first, for its index, {@code >= 16}:
     * an object no longer than that costs one request. Default 16 KiB.
     */
    public Builder firstReadBytes(int bytes) {
      this.firstReadBytes = atLeast("firstReadBytes", bytes, ObjectIndex.LEAST);
      return this;
    }

    /** Memory for the indexes of objects read or written last, {@code >= 0}. Default 4 MiB. */
    public Builder indexCacheBytes(long bytes) {
      if (bytes < 0) {
        throw refused("indexCacheBytes", bytes, ">= 0");
      }
      this.indexCacheBytes = bytes;
      return this;
    }

    /** Appends of a partition that may wait, {@code >= 1}; one more fails. Default 10 000. */
    public Builder maxWaiting(int appends) {
      this.maxWaiting = atLeast("maxWaiting", appends, 1);
      return this;
    }

    /**
     * Whether a read that its request gave up goes on for the client's next one (FE-24): it holds a
     * connection meanwhile. Default: yes.
     */
    public Builder finishInBackground(boolean finish) {
      this.finishInBackground = finish;
      return this;
    }

    /**
     * The longest that one request takes, the SDK's retries included, where the deadline leaves
     * more, and a whole append. From 1 ms to a day. Default 30 s.
     */
    public Builder callTimeout(Duration longest) {
      if (longest.compareTo(Duration.ofMillis(1)) < 0
          || longest.compareTo(Duration.ofDays(1)) > 0) {
        throw refused("callTimeout", longest, "PT0.001S to PT24H");
      }
      this.callTimeout = longest;
      return this;
    }

    /** Of the appends' timers; never disposed here. Default: the parallel one. */
    public Builder scheduler(Scheduler scheduler) {
      this.scheduler = Objects.requireNonNull(scheduler, "scheduler");
      return this;
    }

    /** Asks nothing of S3. */
    public S3Store build() {
      return new S3Store(this);
    }
  }
}
