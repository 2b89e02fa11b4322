package dev.timebound.samples.kafka.log;

import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.pg.RoutedDatabase;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * Topics in Postgres: any number of gateways may serve those of one database. Appends of one
 * partition are serialised by a lock on its row, held until they are committed, so that no reader
 * sees an offset before those that precede it. Thread-safe.
 */
public final class PgTopicLog implements TopicLog {
  private final RoutedDatabase database;
  private final PgAppends appends;
  private final PgPartitionStore store;
  private final PgAppendSignal signal;

  /** What is known of topics: none is ever deleted, or changes its partitions. */
  private final Map<String, Integer> known = new ConcurrentHashMap<>();

  private PgTopicLog(RoutedDatabase database, PgAppendSignal signal) {
    this.database = database;
    this.appends = new PgAppends();
    this.signal = signal;
    this.store = new PgPartitionStore(database, this::topics, signal);
  }

  /**
   * Makes the tables where they are not there, and listens for appends of other gateways.
   *
   * @param database whose reads see what it wrote before: without readers, or with none that lags
   * @param listening for one connection of its own
   */
  public static Mono<PgTopicLog> open(
      RoutedDatabase database, PostgresqlConnectionFactory listening) {
    return database
        .write(PgSchema::create)
        .then(
            Mono.fromSupplier(
                () ->
                    new PgTopicLog(
                        database, new PgAppendSignal(listening, Schedulers.parallel()).start())));
  }

  /** Listens no more. The database is left open. */
  public Mono<Void> close() {
    return signal.close();
  }

  @Override
  public PartitionStore store() {
    return store;
  }

  @Override
  public Mono<Map<String, Integer>> topics() {
    return database.readMono(
        connection ->
            read(
                connection.createStatement("SELECT topic, partitions FROM kafka_topic").execute()));
  }

  @Override
  public Mono<Map<String, Integer>> topics(Set<String> names) {
    return Mono.defer(
        () -> {
          Map<String, Integer> found = new HashMap<>();
          names.forEach(
              name -> {
                Integer partitions = known.get(name);
                if (partitions != null) {
                  found.put(name, partitions);
                }
              });
          return found.size() == names.size()
              ? Mono.just(found)
              : database.readMono(
                  connection ->
                      read(
                          connection
                              .createStatement(
                                  "SELECT topic, partitions FROM kafka_topic WHERE topic = ANY($1)")
                              .bind(0, names.toArray(String[]::new))
                              .execute()));
        });
  }

  private Mono<Map<String, Integer>> read(org.reactivestreams.Publisher<? extends Result> results) {
    return Flux.from(results)
        .concatMap(
            result ->
                result.map(
                    (row, meta) -> Map.entry(row.get(0, String.class), row.get(1, Integer.class))))
        .collectMap(Map.Entry::getKey, Map.Entry::getValue)
        .doOnNext(known::putAll);
  }

  @Override
  public Mono<Integer> create(String topic, int partitions) {
    return database
        .writeMono(connection -> create(connection, topic, partitions))
        .then(topics(Set.of(topic)))
        .map(found -> found.get(topic));
  }

  private static Mono<Long> create(Connection connection, String topic, int partitions) {
    return Flux.from(
            connection
                .createStatement(
                    """
                    WITH made AS (
                      INSERT INTO kafka_topic VALUES ($1, $2) ON CONFLICT DO NOTHING
                      RETURNING topic, partitions)
                    INSERT INTO kafka_partition (topic, partition)
                    SELECT topic, generate_series(0, partitions - 1) FROM made
                    """)
                .bind(0, topic)
                .bind(1, partitions)
                .execute())
        .concatMap(Result::getRowsUpdated)
        .reduce(0L, Long::sum);
  }

  @Override
  public Mono<Appended> append(TopicPartition partition, ProducedBatch batch) {
    return database.writeMono(connection -> appends.append(connection, partition, batch));
  }

  @Override
  public Mono<Long> newProducerId() {
    return database.writeMono(
        connection ->
            Flux.from(connection.createStatement("SELECT nextval('kafka_producer_id')").execute())
                .concatMap(result -> result.map((row, meta) -> row.get(0, Long.class))));
  }
}
