package dev.timebound.samples.kafka.log;

import dev.timebound.fetch.BoundedStore;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.fetch.pg.LockedPartition;
import dev.timebound.fetch.pg.PgStore;
import dev.timebound.pg.RoutedDatabase;
import dev.timebound.samples.kafka.log.ProducerState.Decision;
import dev.timebound.samples.kafka.log.ProducerState.Verdict;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.spi.Connection;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * Topics in Postgres: any number of gateways may serve those of one database. What a producer's
 * sequence numbers say of a batch is decided under the lock of its partition, and remembered in the
 * transaction that appends it. Thread-safe.
 */
public final class PgTopicLog implements TopicLog {
  private final RoutedDatabase database;
  private final PgStore store;
  private final PartitionStore reads;

  /** They wait for the partition's lock: one of each does so on a connection, the others here. */
  private final BoundedStore appends;

  private final LockWaits locks = new LockWaits();

  private PgTopicLog(RoutedDatabase database, PgStore store, int reads, int appends) {
    this.database = database;
    this.store = store;
    this.reads = BoundedStore.builder(store, reads).build();
    this.appends = BoundedStore.builder(store, appends).maxPerPartition(1).name("appends").build();
  }

  /**
   * Makes the tables where they are not there, and listens for appends of other gateways.
   *
   * @param listening for one connection of its own
   * @param reads at a time, at most, half of them of one partition; {@code >= 1}
   * @param appends at a time, at most, one of each partition; {@code >= 1}
   */
  public static Mono<PgTopicLog> open(
      RoutedDatabase database, PostgresqlConnectionFactory listening, int reads, int appends) {
    return database
        .write(PgProducers::create)
        .then(PgStore.builder(database).listening(listening).open())
        .map(store -> new PgTopicLog(database, store, reads, appends));
  }

  /** Listens no more. The database is left open. */
  public Mono<Void> close() {
    return Mono.fromRunnable(store::close);
  }

  @Override
  public PartitionStore store() {
    return reads;
  }

  @Override
  public Mono<Map<String, Integer>> topics() {
    return store.topics();
  }

  @Override
  public Mono<Map<String, Integer>> topics(Set<String> names) {
    return store.topics(names);
  }

  @Override
  public Mono<Integer> create(String topic, int partitions) {
    return store.createTopic(topic, partitions);
  }

  @Override
  public Mono<Appended> append(TopicPartition partition, ProducedBatch batch) {
    return locks.through(
        partition,
        attempt -> appends.admit(partition, attempt),
        database.writeMono(connection -> append(connection, partition, batch)));
  }

  private Mono<Appended> append(
      Connection connection, TopicPartition partition, ProducedBatch batch) {
    return store
        .lock(connection, partition, LockWaits.LONGEST)
        .flatMap(
            locked ->
                batch.isIdempotent() ? appendOnce(connection, locked, batch) : write(locked, batch))
        .switchIfEmpty(
            Mono.fromSupplier(() -> Appended.refused(Appended.Outcome.UNKNOWN_PARTITION)));
  }

  private static Mono<Appended> write(LockedPartition locked, ProducedBatch batch) {
    return locked
        .append(batch::at, batch.recordCount(), batch.maxTimestamp())
        .map(Appended::written);
  }

  private static Mono<Appended> appendOnce(
      Connection connection, LockedPartition locked, ProducedBatch batch) {
    return PgProducers.state(connection, locked.partition(), batch.producerId())
        .map(Optional::of)
        .defaultIfEmpty(Optional.empty())
        .flatMap(known -> appendOnce(connection, locked, batch, known.orElse(null)));
  }

  private static Mono<Appended> appendOnce(
      Connection connection,
      LockedPartition locked,
      ProducedBatch batch,
      @Nullable ProducerState state) {
    Decision decision = ProducerState.decide(state, batch, false); // no row is ever deleted
    if (decision.verdict() != Verdict.NEXT) {
      return Mono.just(Appended.of(decision));
    }
    ProducerState after = ProducerState.after(state, batch, locked.nextOffset());
    return PgProducers.remember(connection, locked.partition(), batch.producerId(), after)
        .then(write(locked, batch));
  }

  @Override
  public Mono<Long> newProducerId() {
    return database.writeMono(PgProducers::newId);
  }
}
