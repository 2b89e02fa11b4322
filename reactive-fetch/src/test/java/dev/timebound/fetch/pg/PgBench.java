package dev.timebound.fetch.pg;

import static dev.timebound.fetch.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.pg.RoutedDatabase;
import dev.timebound.pg.RoutedDatabaseBuilder;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresServer;
import dev.timebound.test.PostgresSession;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.nio.ByteBuffer;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A store on the real primary, with tables of its own: those before are dropped. Each partition is
 * the first one of a topic of its own, whose rows lie in child tables of their own, so that a lock
 * on one of those stalls this partition and no others. Its close shows that nothing is left.
 */
final class PgBench implements AutoCloseable {
  static final Duration BOUND = Duration.ofSeconds(30);
  static final int CONNECTIONS = 16;

  private static final List<String> TABLES = List.of("batch", "partition");
  private static final AtomicInteger NUMBER = new AtomicInteger();

  final String application = "fetch-" + NUMBER.incrementAndGet();
  final SimpleMeterRegistry meters = new SimpleMeterRegistry();
  final PostgresReplicaSet servers;
  final PostgresServer primary;
  final FaultProxy proxy;
  final PostgresqlConnectionFactory driver;
  final ConnectionPool pool;
  final RoutedDatabase database;
  final PgStore store;

  private final Map<TopicPartition, Connection> stalled = new HashMap<>();
  private int topics;

  private PgBench(PostgresReplicaSet servers, boolean replica) {
    this.servers = servers;
    primary = servers.primary();
    proxy = primary.proxy();
    makeTables();
    driver = driver(primary.port());
    pool =
        new ConnectionPool(
            ConnectionPoolConfiguration.builder(driver(proxy.port()))
                .initialSize(0)
                .maxSize(CONNECTIONS)
                .build());
    RoutedDatabaseBuilder builder = RoutedDatabase.builder().writer(pool).meters(meters);
    if (replica) {
      builder.reader("standby-1", config -> to(config, servers.standby().port())).readerMaxSize(4);
    } else {
      builder.writerSpill((CONNECTIONS - 1.0) / CONNECTIONS);
    }
    database = builder.build();
    store = got(PgStore.builder(database).listening(driver).open());
  }

  /** All of it on the writer. */
  static PgBench on(PostgresReplicaSet servers) {
    return new PgBench(servers, false);
  }

  /** Batches are read from the standby. */
  static PgBench withReplica(PostgresReplicaSet servers) {
    return new PgBench(servers, true);
  }

  PostgresqlConnectionFactory driver(int port) {
    return new PostgresqlConnectionFactory(
        to(PostgresqlConnectionConfiguration.builder(), port).build());
  }

  private PostgresqlConnectionConfiguration.Builder to(
      PostgresqlConnectionConfiguration.Builder config, int port) {
    return config
        .host(primary.host())
        .port(port)
        .username(primary.user())
        .database(primary.database())
        .applicationName(application);
  }

  private void makeTables() {
    dropTables();
    for (String sql : PgStore.schema()) {
      primary.execute(sql);
    }
    for (String table : TABLES) {
      primary.execute("ALTER TABLE fetch_" + table + " RENAME TO fetch_whole");
      primary.execute(
          "CREATE TABLE fetch_"
              + table
              + " (LIKE fetch_whole INCLUDING ALL) PARTITION BY LIST (topic)");
      primary.execute(
          "CREATE TABLE fetch_" + table + "_rest PARTITION OF fetch_" + table + " DEFAULT");
      primary.execute("DROP TABLE fetch_whole");
    }
    // the plan of one partition's statement is to lock no other one's table
    primary.execute(
        "ALTER DATABASE " + primary.database() + " SET plan_cache_mode = 'force_custom_plan'");
  }

  private void dropTables() {
    primary.execute(
        "DROP TABLE IF EXISTS fetch_topic, fetch_partition, fetch_batch, fetch_transaction");
  }

  TopicPartition newPartition() {
    String topic = "topic" + topics++;
    for (String table : TABLES) {
      primary.execute(
          String.format(
              "CREATE TABLE fetch_%1$s_%2$s PARTITION OF fetch_%1$s FOR VALUES IN ('%2$s')",
              table, topic));
    }
    got(store.createTopic(topic, 1));
    return new TopicPartition(topic, 0);
  }

  /** A partition of so many batches of one record and a number of bytes, {@code bytes} each. */
  TopicPartition filled(int batches, int bytes) {
    TopicPartition partition = newPartition();
    append(partition, batches, bytes);
    return partition;
  }

  void append(TopicPartition partition, int batches, int bytes) {
    for (int i = 0; i < batches; i++) {
      got(store.append(partition, ByteBuffer.allocate(bytes), 1, 1000 + i));
    }
  }

  /** Many small batches at once, behind the store's back. */
  void flood(TopicPartition partition, int batches, int bytes) {
    primary.execute(
        "INSERT INTO fetch_batch SELECT ?, 0, i, i, 1, i, i, ?, decode(repeat('00', ?), 'hex')"
            + " FROM generate_series(0, ?) AS i",
        partition.topic(),
        bytes,
        bytes,
        batches - 1);
    primary.execute(
        "UPDATE fetch_partition SET next_offset = ?, latest_timestamp = ? WHERE topic = ?",
        (long) batches,
        (long) batches - 1,
        partition.topic());
  }

  List<Long> bases(TopicPartition partition, long offset, int maxBytes, Isolation isolation) {
    return read(partition, new ReadSpec(offset, maxBytes, true, isolation)).stream()
        .map(RecordBatch::baseOffset)
        .toList();
  }

  List<RecordBatch> read(TopicPartition partition, ReadSpec spec) {
    return got(
        Flux.from(
                Deadlines.<RecordBatch>within(BOUND)
                    .apply(store.read(partition, spec, Deadline.after(BOUND))))
            .collectList());
  }

  static <T> T got(Mono<T> mono) {
    return Objects.requireNonNull(mono.block(BOUND));
  }

  /** Its reads wait from now on; so do appends to it. */
  void stall(TopicPartition partition) {
    lock("batch", partition);
  }

  /** Where it begins and ends is asked in vain from now on. */
  void stallOffsets(TopicPartition partition) {
    lock("partition", partition);
  }

  private void lock(String table, TopicPartition partition) {
    Connection lock = primary.connect("lock");
    stalled.put(partition, lock);
    try {
      lock.setAutoCommit(false);
      lock.createStatement()
          .execute(
              "LOCK TABLE fetch_" + table + "_" + partition.topic() + " IN ACCESS EXCLUSIVE MODE");
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  void thaw(TopicPartition partition) {
    try (Connection lock = stalled.remove(partition)) {
      if (lock != null) {
        lock.rollback();
      }
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Statements of the store's that run on the primary now. */
  List<PostgresSession> running() {
    return primary.sessions(application).stream().filter(PostgresSession::isRunning).toList();
  }

  /** Those that wait for what {@link #stall} or {@link #stallOffsets} has locked. */
  List<PostgresSession> stuck() {
    return running().stream().filter(each -> each.waitEvent().equals("relation")).toList();
  }

  int acquired() {
    return pool.getMetrics().orElseThrow().acquiredSize();
  }

  /** Routed reads that went there for that reason. */
  int routes(String target, String reason) {
    Counter counter =
        meters.find("timebound.pg.routes").tag("target", target).tag("reason", reason).counter();
    return counter == null ? 0 : (int) counter.count();
  }

  @Override
  public void close() {
    new ArrayList<>(stalled.keySet()).forEach(this::thaw);
    servers.heal();
    proxy.heal();
    try {
      eventually(
          () -> {
            assertThat(acquired()).as("connections taken").isZero();
            assertThat(primary.sessions(application))
                .as("sessions")
                .noneMatch(PostgresSession::isIdleInTransaction)
                .noneMatch(PostgresSession::isRunning);
          });
    } finally {
      store.close();
      database.closeLater().block(BOUND);
      pool.disposeLater().block(BOUND);
      proxy.close();
    }
    eventually(() -> assertThat(primary.sessions(application)).isEmpty());
    dropTables();
    primary.execute("ALTER DATABASE " + primary.database() + " RESET plan_cache_mode");
  }
}
