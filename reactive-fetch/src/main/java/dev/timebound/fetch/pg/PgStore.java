package dev.timebound.fetch.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.pg.RoutedDatabase;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.spi.Connection;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Partitions in Postgres, over a {@link RoutedDatabase}: any number of processes append to those of
 * one database, and read them. Thread-safe.
 *
 * <pre>{@code
 * PgStore store = PgStore.builder(database).listening(driver).open().block();
 * store.createTopic("orders", 12)
 *     .then(store.append(new TopicPartition("orders", 0), batch, 3, now))
 *     .subscribe();
 * }</pre>
 *
 * <p>Appends to one partition are serialised by a lock on its row, held until they are committed,
 * so that no reader sees an offset before those that precede it. Batches are read from a replica
 * where the database has one that serves; where a partition begins and ends, what is at a time, and
 * whether it exists, from the writer (FE-12). A replica that lags so costs a second read, on the
 * writer, and neither an offset nor a record. A read that is given up is cancelled on the server
 * (FE-22).
 *
 * <p>Reads take connections of the database's pools: {@link dev.timebound.fetch.BoundedStore} with
 * as many permits as reads may have makes waiting for one a wait, and no stall.
 */
public final class PgStore implements PartitionStore, AutoCloseable {
  /** A row of an index, and a notification, have room for it. */
  private static final int LONGEST_NAME = 249;

  private final RoutedDatabase database;
  private final PgTopics topics;
  private final PgReads reads;
  private final @Nullable AppendSignal signal;

  private PgStore(Builder builder) {
    database = builder.database;
    topics = new PgTopics(database);
    reads = new PgReads(database);
    signal =
        builder.listening == null ? null : new AppendSignal(builder.listening, builder.scheduler);
  }

  /**
   * @param database whose writer has the tables; stays the caller's to close
   */
  public static Builder builder(RoutedDatabase database) {
    return new Builder(database);
  }

  /** The statements that make the tables, in their order: for those who do so themselves. */
  public static List<String> schema() {
    return PgSchema.STATEMENTS;
  }

  /** Listens no more; those who wait for appends are not woken. The database is left open. */
  @Override
  public void close() {
    if (signal != null) {
      signal.close();
    }
  }

  // --- topics

  /** All topics, with their number of partitions. */
  public Mono<Map<String, Integer>> topics() {
    return topics.all();
  }

  /** Those of the topics that exist, with their number of partitions. */
  public Mono<Map<String, Integer>> topics(Set<String> names) {
    return topics.of(names);
  }

  /**
   * Makes a topic where there is none of this name. One that is there is not changed, and none is
   * ever deleted.
   *
   * @param topic not blank, 249 characters at most
   * @param partitions {@code >= 1}
   * @return the number of partitions it has, which is another where it was there before
   */
  public Mono<Integer> createTopic(String topic, int partitions) {
    if (topic.isBlank() || topic.length() > LONGEST_NAME) {
      throw refused("topic", "'" + topic + "'", "not blank, at most 249 characters");
    }
    if (partitions < 1) {
      throw refused("partitions", partitions, ">= 1");
    }
    return topics.create(topic, partitions);
  }

  // --- appends

  /**
   * Appends a batch; readers see it when this completes. Of two appends to one partition whichever
   * was subscribed first is not sure to come first: who needs an order waits for the first one's
   * end. A cancel may come too late to stop it.
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
    return locked(partition, locked -> locked.append(bytes, records, maxTimestamp));
  }

  /**
   * Appends a batch of a producer's transaction, which its first batch opens: READ_COMMITTED
   * readers see it, and all that follows it, once it has ended.
   */
  public Mono<Long> appendTransactional(
      TopicPartition partition,
      long producerId,
      LongFunction<ByteBuffer> bytes,
      int records,
      long maxTimestamp) {
    return locked(
        partition, locked -> locked.appendTransactional(producerId, bytes, records, maxTimestamp));
  }

  /**
   * Ends a producer's transaction on a partition by a marker, which takes one offset.
   *
   * @return the marker's offset; {@link IllegalStateException} where the producer has none open
   */
  public Mono<Long> endTransaction(
      TopicPartition partition,
      long producerId,
      boolean commit,
      LongFunction<ByteBuffer> marker,
      long timestamp) {
    return locked(
        partition, locked -> locked.endTransaction(producerId, commit, marker, timestamp));
  }

  /**
   * Locks a partition in the caller's own transaction, until that ends: for appends that are to be
   * committed together with what else it writes.
   *
   * <pre>{@code
   * database.writeMono(c -> store.lock(c, partition)
   *     .flatMap(locked -> producers.next(c, locked.nextOffset())
   *         .then(locked.append(batch::at, 3, now))));
   * }</pre>
   *
   * @param connection to the database's writer, in a transaction at READ COMMITTED
   * @return empty where there is no such partition
   */
  public Mono<LockedPartition> lock(Connection connection, TopicPartition partition) {
    return LockedPartition.lock(connection, partition);
  }

  /**
   * As before, for those who would rather ask again later than hold a connection that waits.
   *
   * @param longest that it waits for the lock, and what follows in the transaction for its own
   *     locks; in milliseconds, one at least
   * @return an {@link io.r2dbc.spi.R2dbcException} of SQLSTATE 55P03 where somebody else holds it
   *     longer: the transaction is to be rolled back
   */
  public Mono<LockedPartition> lock(
      Connection connection, TopicPartition partition, Duration longest) {
    return LockedPartition.lock(connection, partition, longest);
  }

  /**
   * Moves the partition's start up to an offset; batches that end before it are deleted. An offset
   * before the start changes nothing. The start is moved first, in a transaction of its own, and
   * old batches go in small ones: appends wait for neither. What is left by one that did not come
   * to its end is deleted by the next one.
   *
   * @return {@link IllegalArgumentException} where the offset lies past the high watermark, or
   *     there is no such partition
   */
  public Mono<Void> deleteBefore(TopicPartition partition, long offset) {
    return locked(partition, locked -> locked.moveStart(offset))
        .then(Retention.delete(database, partition, offset));
  }

  private <T> Mono<T> locked(TopicPartition partition, Function<LockedPartition, Mono<T>> work) {
    Objects.requireNonNull(partition, "partition");
    return database.writeMono(
        connection ->
            lock(connection, partition)
                .switchIfEmpty(
                    Mono.error(() -> refused("partition", partition, "one that was created")))
                .flatMap(work));
  }

  // --- what a fetcher asks

  @Override
  public Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked) {
    return topics.existing(asked);
  }

  /** On the writer's word. */
  @Override
  public Mono<Offsets> offsets(TopicPartition partition) {
    return reads
        .offsets(partition)
        .switchIfEmpty(Mono.error(() -> refused("partition", partition, "one that was created")));
  }

  /** By statements of some hundred batches, between which the budget is looked at. */
  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    return reads.read(partition, spec, budget);
  }

  /** As exact as batches are: the first offset of the first batch with a record at or after it. */
  @Override
  public Mono<TimestampOffset> offsetFor(
      TopicPartition partition, long timestamp, Isolation isolation) {
    return reads.offsetFor(partition, timestamp, isolation);
  }

  /** Empty while it does not listen: without a connection to do so, or until that is back. */
  @Override
  public Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
    return signal == null ? Optional.empty() : signal.onAppend(partition, wake);
  }

  static IllegalArgumentException refused(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }

  /** Settings of a {@link PgStore}. Not thread-safe. */
  public static final class Builder {
    private final RoutedDatabase database;
    private boolean createTables = true;
    private @Nullable PostgresqlConnectionFactory listening;
    private Scheduler scheduler = Schedulers.parallel();

    private Builder(RoutedDatabase database) {
      this.database = Objects.requireNonNull(database, "database");
    }

    /**
     * How to reach the writer by a connection of its own, on which it listens for appends, of all
     * processes; no pool. Default: none; long polls then ask again after pauses.
     */
    public Builder listening(PostgresqlConnectionFactory writer) {
      this.listening = Objects.requireNonNull(writer, "listening");
      return this;
    }

    /** Whether the tables are made where they are not there. Default: yes. */
    public Builder createTables(boolean create) {
      this.createTables = create;
      return this;
    }

    /** Timers of the connection that listens; never disposed here. Default: the parallel one. */
    public Builder scheduler(Scheduler scheduler) {
      this.scheduler = Objects.requireNonNull(scheduler, "scheduler");
      return this;
    }

    /**
     * Makes the tables, and completes once it listens; where that does not come about within 2 s it
     * is tried on in the background.
     */
    public Mono<PgStore> open() {
      return Mono.defer(
              () -> createTables ? database.write(PgSchema::create).then() : Mono.<Void>empty())
          .then(Mono.fromSupplier(() -> new PgStore(this)))
          .flatMap(
              store ->
                  store.signal == null
                      ? Mono.just(store)
                      : store.signal.start().thenReturn(store).doOnCancel(store::close));
    }
  }
}
