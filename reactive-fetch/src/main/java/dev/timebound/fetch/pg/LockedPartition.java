package dev.timebound.fetch.pg;

import dev.timebound.fetch.TopicPartition;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.Statement;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Objects;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * A partition that the caller's transaction holds locked: nobody else appends to it until that
 * ends, so that what is decided by {@link #nextOffset} holds, and no reader sees an offset before
 * those that precede it. What is appended is there for readers once the transaction is committed;
 * then those who wait for appends are woken, in all processes.
 *
 * <p>Good until the transaction's end. Not thread-safe: one call after the other, as the connection
 * wants it; each does nothing before subscription, and is to be subscribed once.
 */
public final class LockedPartition {
  /** Who listens to it is told of appends; the payload is {@code partition/topic}. */
  static final String CHANNEL = "timebound_fetch_append";

  private static final String LOCK =
      """
      SELECT log_start, next_offset, first_open, latest_timestamp FROM fetch_partition
      WHERE topic = $1 AND partition = $2 FOR NO KEY UPDATE
      """;

  /** The wait is set before the row is locked: that is done to what is joined. */
  private static final String LOCK_WITHIN =
      """
      WITH wait AS MATERIALIZED (SELECT set_config('lock_timeout', $3, true))
      SELECT log_start, next_offset, first_open, latest_timestamp FROM wait, fetch_partition
      WHERE topic = $1 AND partition = $2 FOR NO KEY UPDATE OF fetch_partition
      """;

  private static final String WRITE =
      """
      WITH moved AS (
        UPDATE fetch_partition SET next_offset = $4 + 1, latest_timestamp = $7, first_open = $10
        WHERE topic = $1 AND partition = $2)
      INSERT INTO fetch_batch
        (topic, partition, base_offset, last_offset, records, max_timestamp, latest_timestamp,
         size, bytes)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
      RETURNING pg_notify('%s', partition || '/' || topic)
      """
          .formatted(CHANNEL);

  private static final String MOVE_START =
      "UPDATE fetch_partition SET log_start = $3 WHERE topic = $1 AND partition = $2";

  private static final String OPEN =
      """
      INSERT INTO fetch_transaction (topic, partition, producer, first_offset)
      VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
      """;

  private static final String COMMIT =
      """
      DELETE FROM fetch_transaction
      WHERE topic = $1 AND partition = $2 AND producer = $3 AND last_offset IS NULL
      """;

  private static final String ABORT =
      """
      UPDATE fetch_transaction SET last_offset = $4
      WHERE topic = $1 AND partition = $2 AND producer = $3 AND last_offset IS NULL
      """;

  private static final String FIRST_OPEN =
      """
      SELECT min(first_offset) AS first_open FROM fetch_transaction
      WHERE topic = $1 AND partition = $2 AND last_offset IS NULL
      """;

  private final Connection connection;
  private final TopicPartition partition;
  private final long logStart;
  private long nextOffset;
  private long latestTimestamp;
  private @Nullable Long firstOpen;

  private LockedPartition(Connection connection, TopicPartition partition, Row row) {
    this.connection = connection;
    this.partition = partition;
    this.logStart = Rows.number(row, "log_start");
    this.nextOffset = Rows.number(row, "next_offset");
    this.latestTimestamp = Rows.number(row, "latest_timestamp");
    this.firstOpen = row.get("first_open", Long.class);
  }

  /** Empty where there is no such partition. */
  static Mono<LockedPartition> lock(Connection connection, TopicPartition partition) {
    return Mono.defer(() -> locked(connection, partition, Rows.of(connection, LOCK, partition)));
  }

  /** The same, which waits so long at most. */
  static Mono<LockedPartition> lock(
      Connection connection, TopicPartition partition, Duration longest) {
    return Mono.defer(
        () ->
            locked(
                connection,
                partition,
                Rows.of(connection, LOCK_WITHIN, partition)
                    .bind(2, Long.toString(Math.max(1, longest.toMillis())))));
  }

  private static Mono<LockedPartition> locked(
      Connection connection, TopicPartition partition, Statement statement) {
    return Rows.read(statement, row -> new LockedPartition(connection, partition, row))
        .singleOrEmpty();
  }

  public TopicPartition partition() {
    return partition;
  }

  /** The base offset of the batch that is appended next. */
  public long nextOffset() {
    return nextOffset;
  }

  /**
   * Appends a batch.
   *
   * @param bytes of the batch at the base offset that it is given
   * @param records how many offsets it takes, {@code >= 1}
   * @param maxTimestamp milliseconds since 1970; −1 for none
   * @return its base offset
   */
  public Mono<Long> append(LongFunction<ByteBuffer> bytes, int records, long maxTimestamp) {
    return Mono.defer(() -> write(bytes, records, maxTimestamp));
  }

  /**
   * Appends a batch of a producer's transaction, which its first batch opens: READ_COMMITTED
   * readers see it, and all that follows it, once it has ended.
   */
  public Mono<Long> appendTransactional(
      long producerId, LongFunction<ByteBuffer> bytes, int records, long maxTimestamp) {
    return Mono.defer(
        () -> {
          if (firstOpen == null) {
            firstOpen = nextOffset;
          }
          return Rows.done(
                  Rows.of(connection, OPEN, partition).bind(2, producerId).bind(3, nextOffset))
              .then(append(bytes, records, maxTimestamp));
        });
  }

  /**
   * Ends a producer's transaction by a marker, which takes one offset.
   *
   * @return the marker's offset; {@link IllegalStateException} where the producer has none open
   */
  public Mono<Long> endTransaction(
      long producerId, boolean commit, LongFunction<ByteBuffer> marker, long timestamp) {
    return Mono.defer(() -> ended(producerId, commit))
        .flatMap(
            rows ->
                rows > 0
                    ? readFirstOpen()
                    : Mono.error(
                        new IllegalStateException(
                            "no transaction of producer " + producerId + " is open")))
        .then(append(marker, 1, timestamp));
  }

  /** An offset before the start changes nothing; one past the end is refused. */
  Mono<Void> moveStart(long offset) {
    return Mono.defer(
        () -> {
          if (offset > nextOffset) {
            throw PgStore.refused("offset", offset, "<= high watermark " + nextOffset);
          }
          return offset <= logStart
              ? Mono.empty()
              : Rows.done(Rows.of(connection, MOVE_START, partition).bind(2, offset)).then();
        });
  }

  private Mono<Long> ended(long producerId, boolean commit) {
    return Rows.done(
        commit
            ? Rows.of(connection, COMMIT, partition).bind(2, producerId)
            : Rows.of(connection, ABORT, partition).bind(2, producerId).bind(3, nextOffset));
  }

  private Mono<Void> readFirstOpen() {
    return Rows.read(
            Rows.of(connection, FIRST_OPEN, partition),
            row -> {
              firstOpen = row.get("first_open", Long.class);
              return partition;
            })
        .then();
  }

  private Mono<Long> write(LongFunction<ByteBuffer> bytes, int records, long maxTimestamp) {
    if (records < 1) {
      throw PgStore.refused("records", records, ">= 1");
    }
    long base = nextOffset;
    long last = base + records - 1;
    long latest = Math.max(latestTimestamp, maxTimestamp);
    // the driver reads it to its end
    ByteBuffer batch = Objects.requireNonNull(bytes.apply(base), "bytes").duplicate();
    if (!batch.hasRemaining()) {
      throw PgStore.refused("bytes", "none", "one at least");
    }
    var statement =
        Rows.of(connection, WRITE, partition)
            .bind(2, base)
            .bind(3, last)
            .bind(4, records)
            .bind(5, maxTimestamp)
            .bind(6, latest)
            .bind(7, batch.remaining())
            .bind(8, batch);
    Long open = firstOpen;
    return Rows.done(open == null ? statement.bindNull(9, Long.class) : statement.bind(9, open))
        .map(
            rows -> {
              nextOffset = last + 1;
              latestTimestamp = latest;
              return base;
            });
  }
}
