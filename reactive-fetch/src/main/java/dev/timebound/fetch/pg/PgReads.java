package dev.timebound.fetch.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.pg.ReadOptions;
import dev.timebound.pg.RoutedDatabase;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The questions of a partition's reader. Where it begins and ends, and what is at a time, only the
 * writer knows for certain; batches come from a replica where one serves. One that has none where
 * the writer has is behind, and the writer is asked.
 */
final class PgReads {
  /** What only the writer's word is good for. */
  static final ReadOptions AUTHORITY = ReadOptions.defaults().onWriter();

  private static final String OFFSETS =
      """
      SELECT log_start, next_offset, coalesce(first_open, next_offset) AS stable
      FROM fetch_partition WHERE topic = $1 AND partition = $2
      """;

  private static final String BEHIND =
      """
      SELECT pg_is_in_recovery() AND NOT EXISTS (
        SELECT FROM fetch_partition
        WHERE topic = $1 AND partition = $2
          AND CASE WHEN $4 THEN coalesce(first_open, next_offset) ELSE next_offset END > $3
        ) AS behind
      """;

  /**
   * Each batch's row has the largest timestamp up to there, which grows with the offset: the first
   * row that reaches a time is found by an index. Once older batches are gone it need not have a
   * record of that time itself. The sums of nothing keep it from the other index.
   */
  static final String AT =
      """
      WITH ends AS (
        SELECT log_start,
          CASE WHEN $4 THEN coalesce(first_open, next_offset) ELSE next_offset END AS past
        FROM fetch_partition WHERE topic = $1 AND partition = $2)
      SELECT greatest(base_offset, (SELECT log_start FROM ends)) AS base_offset, max_timestamp
      FROM fetch_batch
      WHERE topic = $1 AND partition = $2 AND latest_timestamp >= $3 AND max_timestamp >= $3
        AND last_offset + 0 >= (SELECT log_start FROM ends)
        AND last_offset + 0 < (SELECT past FROM ends)
      ORDER BY latest_timestamp, last_offset LIMIT 1
      """;

  private final RoutedDatabase database;

  PgReads(RoutedDatabase database) {
    this.database = database;
  }

  /** Empty where there is no such partition. */
  Mono<Offsets> offsets(TopicPartition partition) {
    return database.readMono(
        AUTHORITY, c -> Rows.read(Rows.of(c, OFFSETS, partition), PgReads::offsets));
  }

  private static Offsets offsets(Row row) {
    long start = Rows.number(row, "log_start");
    return Offsets.of(
        start, Rows.number(row, "next_offset"), Math.max(start, Rows.number(row, "stable")));
  }

  Mono<TimestampOffset> offsetFor(TopicPartition partition, long timestamp, Isolation isolation) {
    return database
        .readMono(
            AUTHORITY,
            c ->
                Rows.read(
                    Rows.of(c, AT, partition)
                        .bind(2, timestamp)
                        .bind(3, isolation == Isolation.READ_COMMITTED),
                    row ->
                        new TimestampOffset(
                            Rows.number(row, "base_offset"), Rows.number(row, "max_timestamp"))))
        .defaultIfEmpty(TimestampOffset.NONE);
  }

  Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    return Flux.defer(
        () -> {
          if (budget.isExpired()) {
            return Flux.empty();
          }
          AtomicBoolean behind = new AtomicBoolean();
          return database
              .read(
                  c ->
                      new Pages(c, partition, spec, budget)
                          .all()
                          .switchIfEmpty(behind(c, behind, partition, spec)))
              .switchIfEmpty(
                  Flux.defer(
                      () ->
                          behind.get() && !budget.isExpired()
                              ? database.read(
                                  AUTHORITY, c -> new Pages(c, partition, spec, budget).all())
                              : Flux.empty()));
        });
  }

  /** Whether the server that has nothing is a replica that has not come as far; no batch. */
  private Flux<RecordBatch> behind(
      Connection connection, AtomicBoolean behind, TopicPartition partition, ReadSpec spec) {
    return database.readers().isEmpty()
        ? Flux.empty()
        : Rows.read(
                Rows.of(connection, BEHIND, partition)
                    .bind(2, spec.offset())
                    .bind(3, spec.isolation() == Isolation.READ_COMMITTED),
                row -> Objects.requireNonNull(row.get("behind", Boolean.class)))
            .doOnNext(behind::set)
            .thenMany(Flux.empty());
  }
}
