package dev.timebound.demo.fetch;

import dev.timebound.samples.kafka.KafkaGateway;
import dev.timebound.samples.kafka.PostgresParts;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresServer;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.jspecify.annotations.Nullable;

/**
 * A real Postgres that keeps the log, behind a proxy that gives the way to it the length of a
 * network's. Partition 0 has a table of its own below that of all batches, as an operator may set
 * it up, and the stall is a lock on that table: what reads it waits, and nothing else does.
 */
final class PgDatabase implements Database, AutoCloseable {
  static final Duration PATIENCE = Duration.ofSeconds(30);

  /** One way: a round trip takes 10 ms more, as to a server in another zone. */
  static final Duration DELAY = Duration.ofMillis(5);

  private static final Duration LEASE = Duration.ofSeconds(30);
  private static final int CONNECTIONS = 16;
  private static final String SET_UP = "demo-fetch-setup";

  private static final List<String> APART =
      List.of(
          "ALTER TABLE fetch_batch RENAME TO fetch_batch_whole",
          "CREATE TABLE fetch_batch (LIKE fetch_batch_whole INCLUDING ALL)"
              + " PARTITION BY LIST (partition)",
          "CREATE TABLE fetch_batch_stalled PARTITION OF fetch_batch FOR VALUES IN ("
              + Backlog.STALLED
              + ")",
          "CREATE TABLE fetch_batch_rest PARTITION OF fetch_batch DEFAULT",
          "DROP TABLE fetch_batch_whole");
  private static final String LOCK = "LOCK TABLE fetch_batch_stalled IN ACCESS EXCLUSIVE MODE";

  private static final String RUNNING =
      "SELECT count(*) FROM pg_stat_activity WHERE application_name = ? AND state = 'active'"
          + " AND query_start < clock_timestamp() - ? * interval '1 millisecond'";
  private static final String CANCELLED = "ERROR:  canceling statement due to user request";

  private final PostgresReplicaSet servers;
  private final FaultProxy proxy;
  private @Nullable Connection lock;

  private PgDatabase(PostgresReplicaSet servers) {
    this.servers = servers;
    this.proxy = servers.primary().proxy();
  }

  /** Starts the server and writes the backlog to it, through a gateway. */
  static PgDatabase start(Backlog backlog) throws ExecutionException, InterruptedException {
    PgDatabase database =
        new PgDatabase(
            PostgresReplicaSet.builder()
                .standbys(0)
                // a generic plan would lock the tables of all partitions
                .setting("plan_cache_mode", "force_custom_plan")
                .start());
    try {
      PostgresServer server = database.servers.primary();
      close(database.open(SET_UP));
      APART.forEach(server::execute);
      database.write(backlog);
      database.proxy.delay(DELAY);
      return database;
    } catch (RuntimeException | ExecutionException | InterruptedException e) {
      database.close();
      throw e;
    }
  }

  int port() {
    return servers.primary().port();
  }

  /** What a gateway for that client keeps here; the caller closes it. */
  PostgresParts open(Client client) {
    return open(application(client));
  }

  private static String application(Client client) {
    return "demo-fetch-" + client.title();
  }

  private PostgresParts open(String application) {
    PostgresServer server = servers.primary();
    PostgresqlConnectionFactory driver =
        new PostgresqlConnectionFactory(
            PostgresqlConnectionConfiguration.builder()
                .host("127.0.0.1")
                .port(proxy.port())
                .username(server.user())
                .database(server.database())
                .applicationName(application)
                .build());
    return Objects.requireNonNull(
        PostgresParts.open(driver, CONNECTIONS, LEASE).block(PATIENCE), "parts");
  }

  private static void close(PostgresParts parts) {
    parts.close().block(PATIENCE);
  }

  private void write(Backlog backlog) throws ExecutionException, InterruptedException {
    PostgresParts parts = open(SET_UP);
    KafkaGateway gateway = Objects.requireNonNull(parts.gateway().start().block(PATIENCE));
    parts.log().create(Backlog.TOPIC, Backlog.PARTITIONS).block(PATIENCE);
    try (KafkaProducer<String, byte[]> producer =
        new KafkaProducer<>(
            Map.of(
                ProducerConfig.BOOTSTRAP_SERVERS_CONFIG,
                gateway.bootstrapServers(),
                ProducerConfig.BATCH_SIZE_CONFIG,
                Backlog.BATCH_BYTES,
                ProducerConfig.LINGER_MS_CONFIG,
                100),
            new StringSerializer(),
            new ByteArraySerializer())) {
      byte[] value = new byte[Backlog.RECORD_BYTES];
      List<Future<?>> last = new ArrayList<>();
      for (int number = 0; number < backlog.healthyRecords(); number++) {
        for (int partition = 0; partition < Backlog.PARTITIONS; partition++) {
          if (number < backlog.records(partition)) {
            Future<?> sent =
                producer.send(
                    new ProducerRecord<>(
                        Backlog.TOPIC, partition, Integer.toString(number), value));
            if (number == backlog.records(partition) - 1) {
              last.add(sent);
            }
          }
        }
      }
      producer.flush();
      for (Future<?> each : last) {
        each.get();
      }
    } finally {
      gateway.stop().block(PATIENCE);
      close(parts);
    }
  }

  @Override
  public void stall() {
    try {
      Connection connection = servers.primary().connect("demo-fetch-lock");
      lock = connection;
      connection.setAutoCommit(false);
      try (var statement = connection.createStatement()) {
        statement.execute(LOCK);
      }
    } catch (SQLException e) {
      throw new IllegalStateException("no lock: " + e.getMessage(), e);
    }
  }

  @Override
  public void lift() {
    Connection held = lock;
    lock = null;
    if (held != null) {
      try {
        held.rollback();
        held.close();
      } catch (SQLException e) {
        throw new IllegalStateException("the lock is not given back: " + e.getMessage(), e);
      }
    }
  }

  @Override
  public long running(Client client, Duration longerThan) {
    return Long.parseLong(
        servers.primary().value(RUNNING, application(client), longerThan.toMillis()));
  }

  @Override
  public long cancelled(Client client) {
    String of = " " + application(client) + " " + CANCELLED;
    return servers.primary().log().stream().filter(line -> line.contains(of)).count();
  }

  @Override
  public void close() {
    lift();
    proxy.close();
    servers.close();
  }
}
