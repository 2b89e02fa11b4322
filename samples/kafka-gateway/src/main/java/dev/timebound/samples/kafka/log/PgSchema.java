package dev.timebound.samples.kafka.log;

import io.r2dbc.spi.Connection;
import java.util.List;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The tables of a log in Postgres. One row is one batch; a partition's row holds where it ends, and
 * is the lock of those that append to it. Batches are stored as they are: their producers compress
 * them, if anyone.
 */
final class PgSchema {
  /** Serialises gateways that start at one moment: CREATE IF NOT EXISTS is no guard against it. */
  private static final String ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(7305808869229538156)";

  private static final List<String> STATEMENTS =
      List.of(
          """
          CREATE TABLE IF NOT EXISTS kafka_topic (
            topic text PRIMARY KEY,
            partitions int NOT NULL)
          """,
          """
          CREATE TABLE IF NOT EXISTS kafka_partition (
            topic text NOT NULL,
            partition int NOT NULL,
            log_start bigint NOT NULL DEFAULT 0,
            next_offset bigint NOT NULL DEFAULT 0,
            PRIMARY KEY (topic, partition))
          """,
          """
          CREATE TABLE IF NOT EXISTS kafka_batch (
            topic text NOT NULL,
            partition int NOT NULL,
            last_offset bigint NOT NULL,
            base_offset bigint NOT NULL,
            records int NOT NULL,
            max_timestamp bigint NOT NULL,
            size int NOT NULL,
            bytes bytea STORAGE EXTERNAL NOT NULL,
            PRIMARY KEY (topic, partition, last_offset))
          """,
          """
          CREATE TABLE IF NOT EXISTS kafka_producer (
            topic text NOT NULL,
            partition int NOT NULL,
            producer bigint NOT NULL,
            epoch int NOT NULL,
            first_sequences int[] NOT NULL,
            last_sequences int[] NOT NULL,
            base_offsets bigint[] NOT NULL,
            PRIMARY KEY (topic, partition, producer))
          """,
          "CREATE SEQUENCE IF NOT EXISTS kafka_producer_id");

  private PgSchema() {}

  /** Makes what is not there yet, within the caller's transaction. */
  static Mono<Void> create(Connection connection) {
    return Flux.concat(Flux.just(ONE_AT_A_TIME), Flux.fromIterable(STATEMENTS))
        .concatMap(sql -> Flux.from(connection.createStatement(sql).execute()))
        .concatMap(result -> result.getRowsUpdated())
        .then();
  }
}
