package dev.timebound.samples.kafka.log;

import dev.timebound.fetch.TopicPartition;
import dev.timebound.samples.kafka.log.ProducerState.Verdict;
import dev.timebound.samples.kafka.log.ProducerState.Written;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** An append, in a transaction: lock the partition, decide, write, tell. */
final class PgAppends {
  /** On which gateways are told of appends; the payload is {@code partition/topic}. */
  static final String CHANNEL = "timebound_kafka_append";

  private static final String LOCK =
      """
      SELECT p.next_offset, s.epoch, s.first_sequences, s.last_sequences, s.base_offsets
      FROM kafka_partition p
      LEFT JOIN kafka_producer s
        ON s.topic = p.topic AND s.partition = p.partition AND s.producer = $3
      WHERE p.topic = $1 AND p.partition = $2
      FOR UPDATE OF p
      """;

  private static final String WRITE =
      """
      WITH moved AS (
        UPDATE kafka_partition SET next_offset = $4 + 1 WHERE topic = $1 AND partition = $2)
      INSERT INTO kafka_batch
        (topic, partition, base_offset, last_offset, records, max_timestamp, size, bytes)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
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

  /** Where a partition ends, and what it knows of the producer. */
  private record Locked(long nextOffset, @Nullable ProducerState producer) {}

  Mono<Appended> append(Connection connection, TopicPartition partition, ProducedBatch batch) {
    return lock(connection, partition, batch.producerId())
        .flatMap(locked -> append(connection, partition, batch, locked))
        .switchIfEmpty(
            Mono.fromSupplier(() -> Appended.refused(Appended.Outcome.UNKNOWN_PARTITION)));
  }

  private static Mono<Locked> lock(Connection connection, TopicPartition partition, long producer) {
    return Flux.from(
            connection
                .createStatement(LOCK)
                .bind(0, partition.topic())
                .bind(1, partition.partition())
                .bind(2, producer)
                .execute())
        .concatMap(result -> result.map((row, meta) -> locked(row)))
        .singleOrEmpty();
  }

  private static Locked locked(Row row) {
    Integer epoch = row.get("epoch", Integer.class);
    long next = row.get("next_offset", Long.class);
    if (epoch == null) {
      return new Locked(next, null);
    }
    Integer[] firsts = row.get("first_sequences", Integer[].class);
    Integer[] lasts = row.get("last_sequences", Integer[].class);
    Long[] bases = row.get("base_offsets", Long[].class);
    List<Written> written = new ArrayList<>();
    for (int i = 0; i < firsts.length; i++) {
      written.add(new Written(firsts[i], lasts[i], bases[i]));
    }
    return new Locked(next, new ProducerState(epoch.shortValue(), written));
  }

  private static Mono<Appended> append(
      Connection connection, TopicPartition partition, ProducedBatch batch, Locked locked) {
    long base = locked.nextOffset();
    if (!batch.isIdempotent()) {
      return write(connection, partition, batch, base).thenReturn(Appended.written(base));
    }
    ProducerState.Decision decision = ProducerState.decide(locked.producer(), batch);
    if (decision.verdict() != Verdict.NEXT) {
      return Mono.just(Appended.of(decision));
    }
    ProducerState after = ProducerState.after(locked.producer(), batch, base);
    return write(connection, partition, batch, base)
        .then(remember(connection, partition, batch.producerId(), after))
        .thenReturn(Appended.written(base));
  }

  private static Mono<Void> write(
      Connection connection, TopicPartition partition, ProducedBatch batch, long base) {
    return Mono.defer(
            () -> {
              var bytes = batch.at(base).duplicate();
              return done(
                  connection
                      .createStatement(WRITE)
                      .bind(0, partition.topic())
                      .bind(1, partition.partition())
                      .bind(2, base)
                      .bind(3, base + batch.recordCount() - 1)
                      .bind(4, batch.recordCount())
                      .bind(5, batch.maxTimestamp())
                      .bind(6, bytes.remaining())
                      .bind(7, bytes)
                      .execute());
            })
        .then(
            Mono.defer(
                () ->
                    done(
                        connection
                            .createStatement("SELECT pg_notify($1, $2)")
                            .bind(0, CHANNEL)
                            .bind(1, partition.partition() + "/" + partition.topic())
                            .execute())));
  }

  private static Mono<Void> remember(
      Connection connection, TopicPartition partition, long producer, ProducerState state) {
    List<Written> written = state.written();
    return Mono.defer(
        () ->
            done(
                connection
                    .createStatement(REMEMBER)
                    .bind(0, partition.topic())
                    .bind(1, partition.partition())
                    .bind(2, producer)
                    .bind(3, (int) state.epoch())
                    .bind(4, written.stream().map(Written::firstSequence).toArray(Integer[]::new))
                    .bind(5, written.stream().map(Written::lastSequence).toArray(Integer[]::new))
                    .bind(6, written.stream().map(Written::baseOffset).toArray(Long[]::new))
                    .execute()));
  }

  private static Mono<Void> done(org.reactivestreams.Publisher<? extends Result> results) {
    return Flux.from(results).concatMap(Result::getRowsUpdated).then();
  }
}
