package dev.timebound.fetch.pg;

import io.r2dbc.spi.Connection;
import java.util.List;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The tables. One row of {@code fetch_batch} is one batch, stored as it is: its producer compresses
 * it, if anyone. A partition's row holds where it ends, and is the lock of those who append to it.
 */
final class PgSchema {
  /** Serialises processes that start at one moment: CREATE IF NOT EXISTS is no guard against it. */
  private static final String ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(7305808869229538156)";

  static final List<String> STATEMENTS =
      List.of(
          """
          CREATE TABLE IF NOT EXISTS fetch_topic (
            topic text PRIMARY KEY,
            partitions int NOT NULL)
          """,
          // first_open: of the open transactions. latest_timestamp: of all batches so far.
          // Room on each page, so that an append's update stays on it and touches no index.
          """
          CREATE TABLE IF NOT EXISTS fetch_partition (
            topic text NOT NULL,
            partition int NOT NULL,
            log_start bigint NOT NULL DEFAULT 0,
            next_offset bigint NOT NULL DEFAULT 0,
            first_open bigint,
            latest_timestamp bigint NOT NULL DEFAULT -1,
            PRIMARY KEY (topic, partition)) WITH (fillfactor = 25)
          """,
          // latest_timestamp: of this batch and those before it, so that it grows with the offset
          """
          CREATE TABLE IF NOT EXISTS fetch_batch (
            topic text NOT NULL,
            partition int NOT NULL,
            last_offset bigint NOT NULL,
            base_offset bigint NOT NULL,
            records int NOT NULL,
            max_timestamp bigint NOT NULL,
            latest_timestamp bigint NOT NULL,
            size int NOT NULL,
            bytes bytea STORAGE EXTERNAL NOT NULL,
            PRIMARY KEY (topic, partition, last_offset))
          """,
          """
          CREATE INDEX IF NOT EXISTS fetch_batch_by_time
            ON fetch_batch (topic, partition, latest_timestamp, last_offset)
          """,
          // open without a last_offset; of those that have ended only the aborted ones are kept
          """
          CREATE TABLE IF NOT EXISTS fetch_transaction (
            topic text NOT NULL,
            partition int NOT NULL,
            producer bigint NOT NULL,
            first_offset bigint NOT NULL,
            last_offset bigint,
            PRIMARY KEY (topic, partition, producer, first_offset))
          """,
          """
          CREATE UNIQUE INDEX IF NOT EXISTS fetch_transaction_open
            ON fetch_transaction (topic, partition, producer) WHERE last_offset IS NULL
          """,
          """
          CREATE INDEX IF NOT EXISTS fetch_transaction_aborted
            ON fetch_transaction (topic, partition, last_offset) WHERE last_offset IS NOT NULL
          """);

  private PgSchema() {}

  /** Makes what is not there yet, within the caller's transaction. */
  static Mono<Void> create(Connection connection) {
    return Flux.concat(Flux.just(ONE_AT_A_TIME), Flux.fromIterable(STATEMENTS))
        .concatMap(sql -> Rows.done(connection.createStatement(sql)))
        .then();
  }
}
