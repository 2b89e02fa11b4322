package dev.timebound.samples.kafka.log;

import dev.timebound.fetch.TopicPartition;
import dev.timebound.samples.kafka.log.ProducerState.Written;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.Statement;
import java.util.ArrayList;
import java.util.List;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What partitions know of idempotent producers; guarded by the partition's lock. */
final class PgProducers {
  /** Serialises gateways that start at one moment: CREATE IF NOT EXISTS is no guard against it. */
  private static final String ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(7305808869229538157)";

  private static final List<String> SCHEMA =
      List.of(
          ONE_AT_A_TIME,
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

  private static final String STATE =
      """
      SELECT epoch, first_sequences, last_sequences, base_offsets FROM kafka_producer
      WHERE topic = $1 AND partition = $2 AND producer = $3
      """;

  private static final String REMEMBER =
      """
      INSERT INTO kafka_producer VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (topic, partition, producer) DO UPDATE SET
        epoch = EXCLUDED.epoch,
        first_sequences = EXCLUDED.first_sequences,
        last_sequences = EXCLUDED.last_sequences,
        base_offsets = EXCLUDED.base_offsets
      """;

  private PgProducers() {}

  /** Makes what is not there yet, within the caller's transaction. */
  static Mono<Void> create(Connection connection) {
    return Flux.fromIterable(SCHEMA).concatMap(sql -> done(connection.createStatement(sql))).then();
  }

  /** Empty of one that the partition knows nothing of. */
  static Mono<ProducerState> state(Connection connection, TopicPartition partition, long producer) {
    return Mono.defer(
        () ->
            Flux.from(of(connection, STATE, partition, producer).execute())
                .concatMap(result -> result.map((row, meta) -> state(row)))
                .singleOrEmpty());
  }

  private static ProducerState state(Row row) {
    Integer[] firsts = row.get("first_sequences", Integer[].class);
    Integer[] lasts = row.get("last_sequences", Integer[].class);
    Long[] bases = row.get("base_offsets", Long[].class);
    List<Written> written = new ArrayList<>();
    for (int i = 0; i < firsts.length; i++) {
      written.add(new Written(firsts[i], lasts[i], bases[i]));
    }
    return new ProducerState(row.get("epoch", Integer.class).shortValue(), written);
  }

  static Mono<Void> remember(
      Connection connection, TopicPartition partition, long producer, ProducerState state) {
    List<Written> written = state.written();
    return Mono.defer(
        () ->
            done(
                of(connection, REMEMBER, partition, producer)
                    .bind(3, (int) state.epoch())
                    .bind(4, written.stream().map(Written::firstSequence).toArray(Integer[]::new))
                    .bind(5, written.stream().map(Written::lastSequence).toArray(Integer[]::new))
                    .bind(6, written.stream().map(Written::baseOffset).toArray(Long[]::new))));
  }

  static Mono<Long> newId(Connection connection) {
    return Flux.from(connection.createStatement("SELECT nextval('kafka_producer_id')").execute())
        .concatMap(result -> result.map((row, meta) -> row.get(0, Long.class)))
        .singleOrEmpty();
  }

  private static Statement of(
      Connection connection, String sql, TopicPartition partition, long producer) {
    return connection
        .createStatement(sql)
        .bind(0, partition.topic())
        .bind(1, partition.partition())
        .bind(2, producer);
  }

  private static Mono<Void> done(Statement statement) {
    return Flux.from(statement.execute()).concatMap(Result::getRowsUpdated).then();
  }
}
