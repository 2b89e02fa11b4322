package dev.timebound.samples.kafka.log;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.pg.RoutedDatabase;
import io.r2dbc.spi.Row;
import java.nio.ByteBuffer;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Reads of the log in Postgres. One that is given up is cancelled on the server by the database it
 * goes through.
 */
final class PgPartitionStore implements PartitionStore {
  /** So that one statement cannot bring very many small batches. */
  private static final int MOST_BATCHES = 1_000;

  private static final String READ =
      """
      SELECT base_offset, last_offset, records, max_timestamp, bytes
      FROM (
        SELECT *, sum(size) OVER (ORDER BY last_offset) AS total
        FROM (
          SELECT * FROM kafka_batch
          WHERE topic = $1 AND partition = $2 AND last_offset >= $3
          ORDER BY last_offset LIMIT %d) AS following) AS summed
      WHERE total <= $4 OR ($5 AND total = size)
      ORDER BY last_offset
      """
          .formatted(MOST_BATCHES);

  private static final String OFFSETS =
      "SELECT log_start, next_offset FROM kafka_partition WHERE topic = $1 AND partition = $2";

  private static final String AT =
      """
      SELECT base_offset, max_timestamp FROM kafka_batch
      WHERE topic = $1 AND partition = $2 AND max_timestamp >= $3
      ORDER BY last_offset LIMIT 1
      """;

  private final RoutedDatabase database;
  private final Function<Set<String>, Mono<Map<String, Integer>>> topics;
  private final PgAppendSignal signal;

  PgPartitionStore(
      RoutedDatabase database,
      Function<Set<String>, Mono<Map<String, Integer>>> topics,
      PgAppendSignal signal) {
    this.database = database;
    this.topics = topics;
    this.signal = signal;
  }

  @Override
  public Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked) {
    Set<String> names =
        asked.stream().map(TopicPartition::topic).collect(Collectors.toUnmodifiableSet());
    return topics
        .apply(names)
        .map(
            found -> {
              Set<TopicPartition> there = new LinkedHashSet<>(asked);
              there.removeIf(each -> each.partition() >= found.getOrDefault(each.topic(), 0));
              return there;
            });
  }

  @Override
  public Mono<Offsets> offsets(TopicPartition partition) {
    return database.readMono(
        connection ->
            Flux.from(
                    connection
                        .createStatement(OFFSETS)
                        .bind(0, partition.topic())
                        .bind(1, partition.partition())
                        .execute())
                .concatMap(result -> result.map((row, meta) -> offsets(row))));
  }

  private static Offsets offsets(Row row) {
    long end = row.get("next_offset", Long.class);
    return Offsets.of(row.get("log_start", Long.class), end, end);
  }

  /** In one statement, which is not begun without a budget and given up at its end. */
  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    return Flux.defer(() -> budget.isExpired() ? Flux.empty() : read(partition, spec))
        .transform(Deadlines.of(budget))
        .onErrorResume(
            DeadlineExceededException.class,
            late -> budget.isExpired() ? Flux.empty() : Flux.error(late));
  }

  private Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec) {
    return database.read(
        connection ->
            Flux.from(
                    connection
                        .createStatement(READ)
                        .bind(0, partition.topic())
                        .bind(1, partition.partition())
                        .bind(2, spec.offset())
                        .bind(3, (long) spec.maxBytes())
                        .bind(4, spec.firstOfAnySize())
                        .execute())
                .concatMap(result -> result.map((row, meta) -> batch(row))));
  }

  private static RecordBatch batch(Row row) {
    return new RecordBatch(
        ByteBuffer.wrap(row.get("bytes", byte[].class)),
        row.get("base_offset", Long.class),
        row.get("last_offset", Long.class),
        row.get("records", Integer.class),
        row.get("max_timestamp", Long.class));
  }

  /** As exact as batches are: the first offset of the first batch with a record at or after it. */
  @Override
  public Mono<TimestampOffset> offsetFor(
      TopicPartition partition, long timestamp, Isolation isolation) {
    return database
        .readMono(
            connection ->
                Flux.from(
                        connection
                            .createStatement(AT)
                            .bind(0, partition.topic())
                            .bind(1, partition.partition())
                            .bind(2, timestamp)
                            .execute())
                    .concatMap(
                        result ->
                            result.map(
                                (row, meta) ->
                                    new TimestampOffset(
                                        row.get("base_offset", Long.class),
                                        row.get("max_timestamp", Long.class)))))
        .defaultIfEmpty(TimestampOffset.NONE);
  }

  @Override
  public Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
    return signal.onAppend(partition, wake);
  }
}
