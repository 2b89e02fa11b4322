package dev.timebound.pg.stock;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresServer;
import dev.timebound.test.PostgresSession;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.pool.PoolMetrics;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * r2dbc-pool over r2dbc-postgresql, as their guides set them up, with a {@link FaultProxy} between.
 */
final class Stock implements AutoCloseable {
  /** Longer than anything in a test may take that is expected to happen. */
  static final Duration PATIENCE = Duration.ofSeconds(30);

  private final PostgresServer server;
  private final String application;
  private final FaultProxy proxy;
  private final PostgresqlConnectionFactory driver;
  private final ConnectionPool pool;

  /**
   * @param application the name under which its sessions are found on the server
   */
  Stock(
      PostgresServer server,
      String application,
      UnaryOperator<ConnectionPoolConfiguration.Builder> settings) {
    this.server = server;
    this.application = application;
    this.proxy = server.proxy();
    this.driver =
        new PostgresqlConnectionFactory(
            PostgresqlConnectionConfiguration.builder()
                .host("127.0.0.1")
                .port(proxy.port())
                .username(server.user())
                .database(server.database())
                .applicationName(application)
                .build());
    this.pool =
        new ConnectionPool(settings.apply(ConnectionPoolConfiguration.builder(driver)).build());
  }

  FaultProxy proxy() {
    return proxy;
  }

  PostgresqlConnectionFactory driver() {
    return driver;
  }

  ConnectionPool pool() {
    return pool;
  }

  PoolMetrics metrics() {
    return pool.getMetrics().orElseThrow();
  }

  /** One query in the usual way: a connection of the pool, given back however it ends. */
  Mono<String> read(String sql) {
    return Mono.usingWhen(pool.create(), connection -> first(connection, sql), Connection::close);
  }

  /** The first column of the first row, as text. */
  static Mono<String> first(Connection connection, String sql) {
    return Flux.from(connection.createStatement(sql).execute())
        .flatMap(result -> result.map(row -> String.valueOf(row.get(0))))
        .next();
  }

  long sessions() {
    return server.sessions(application).size();
  }

  long idleInTransaction() {
    return server.sessions(application).stream()
        .filter(PostgresSession::isIdleInTransaction)
        .count();
  }

  long running() {
    return server.sessions(application).stream().filter(PostgresSession::isRunning).count();
  }

  static void eventually(String what, BooleanSupplier condition) {
    long giveUp = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.getAsBoolean() && System.nanoTime() < giveUp) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(2));
    }
    assertThat(condition.getAsBoolean()).as(what).isTrue();
  }

  /** Ends the pool, whatever state it was brought to, and its sessions. */
  @Override
  public void close() {
    server.thaw();
    proxy.heal();
    // it may wait for what never comes; the proxy's end ends that
    pool.disposeLater().timeout(Duration.ofMillis(500)).onErrorComplete().block(PATIENCE);
    proxy.close();
    eventually("no session of " + application + " is left", () -> sessions() == 0);
  }
}
