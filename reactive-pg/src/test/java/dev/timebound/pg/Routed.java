package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

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
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/**
 * A routed database on the real servers, each behind a proxy; the writer is an r2dbc-pool of {@link
 * #WRITER_SIZE}. Its close shows that nothing is left: no connection taken, no session in a
 * transaction, no statement running.
 */
final class Routed implements AutoCloseable {
  static final int WRITER_SIZE = 4;
  static final Duration BOUND = Duration.ofSeconds(30);

  /**
   * Of a cancel: on a busy machine too what runs comes to its end, and its connection serves on.
   */
  static final Duration PATIENT_GRACE = Duration.ofSeconds(20);

  /** Of an acquire: on a busy machine too a connection is dialled in that time. */
  static final Duration PATIENT_DIAL = Duration.ofSeconds(2);

  /** Of a proof: on a busy machine too a reader that is well has proved itself. */
  static final Duration PATIENT_PROOF = Duration.ofSeconds(2);

  private static final AtomicInteger NUMBER = new AtomicInteger();

  final String application = "routed-" + NUMBER.incrementAndGet();
  final SimpleMeterRegistry meters = new SimpleMeterRegistry();
  final PostgresReplicaSet servers;
  final FaultProxy reader;
  final FaultProxy writer;
  final ConnectionPool writerPool;
  final RoutedDatabase db;

  private Routed(PostgresReplicaSet servers, UnaryOperator<RoutedDatabaseBuilder> settings) {
    this.servers = servers;
    this.reader = servers.standby().proxy();
    this.writer = servers.primary().proxy();
    this.writerPool =
        new ConnectionPool(
            ConnectionPoolConfiguration.builder(
                    new PostgresqlConnectionFactory(
                        to(PostgresqlConnectionConfiguration.builder(), writer).build()))
                .initialSize(0)
                .minIdle(0)
                .maxSize(WRITER_SIZE)
                .build());
    this.db =
        settings
            .apply(
                RoutedDatabase.builder()
                    .writer(writerPool)
                    .reader("standby-1", c -> to(c, reader))
                    .readerMaxSize(4)
                    .acquireTimeout(PATIENT_DIAL)
                    .proofTimeout(PATIENT_PROOF)
                    .meters(meters))
            .build();
  }

  static Routed on(PostgresReplicaSet servers) {
    return on(servers, settings -> settings);
  }

  static Routed on(PostgresReplicaSet servers, UnaryOperator<RoutedDatabaseBuilder> settings) {
    return new Routed(servers, settings);
  }

  PostgresqlConnectionConfiguration.Builder to(
      PostgresqlConnectionConfiguration.Builder config, FaultProxy proxy) {
    return config
        .host("127.0.0.1")
        .port(proxy.port())
        .username(servers.primary().user())
        .database(servers.primary().database())
        .applicationName(application);
  }

  /** Until the reader's floor stands, so that a read finds a connection. */
  Routed warm() {
    db.start();
    eventually(() -> assertThat(gauge("timebound.pg.pool.idle")).isPositive());
    return this;
  }

  double gauge(String name) {
    return meters.get(name).tag("reader", "standby-1").gauge().value();
  }

  /** What one statement gives, each row as text of its first column. */
  static Function<Connection, Publisher<String>> rows(String sql, Object... arguments) {
    return c -> {
      var statement = c.createStatement(sql);
      for (int i = 0; i < arguments.length; i++) {
        statement.bind(i, arguments[i]);
      }
      return Flux.from(statement.execute())
          .concatMap(result -> result.map((row, metadata) -> String.valueOf(row.get(0))));
    };
  }

  List<String> read(String sql, Object... arguments) {
    return read(ReadOptions.defaults(), sql, arguments);
  }

  List<String> read(ReadOptions options, String sql, Object... arguments) {
    return Objects.requireNonNull(
        db.read(options, rows(sql, arguments)).collectList().block(BOUND));
  }

  /** {@code reader proved: 2, writer reader_stale: 1}, by target and reason. */
  String routes() {
    return String.join(
        ", ",
        meters.find("timebound.pg.routes").counters().stream()
            .map(
                c ->
                    String.format(
                        Locale.ROOT,
                        "%s %s: %.0f",
                        c.getId().getTag("target"),
                        c.getId().getTag("reason"),
                        c.count()))
            .sorted()
            .toList());
  }

  /** Connections closed in place of going back, for that reason. */
  int closed(CloseReason reason) {
    Counter counter =
        meters.find("timebound.pg.release.closed").tag("reason", reason.tag()).counter();
    return counter == null ? 0 : (int) counter.count();
  }

  List<PostgresSession> sessions(PostgresServer server) {
    return server.sessions(application);
  }

  @Override
  public void close() {
    servers.heal();
    reader.heal();
    writer.heal();
    eventually(
        () -> {
          assertThat(writerPool.getMetrics().orElseThrow().acquiredSize())
              .as("writer connections taken")
              .isZero();
          assertThat(gauge("timebound.pg.pool.acquired")).as("reader connections taken").isZero();
          for (PostgresServer server : List.of(servers.primary(), servers.standby())) {
            assertThat(sessions(server))
                .as("sessions on %s", server.name())
                .noneMatch(PostgresSession::isIdleInTransaction)
                .noneMatch(PostgresSession::isRunning);
          }
        });
    db.closeLater().block(BOUND);
    writerPool.disposeLater().block(BOUND);
    reader.close();
    writer.close();
  }
}
