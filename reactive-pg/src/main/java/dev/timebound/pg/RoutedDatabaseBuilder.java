package dev.timebound.pg;

import dev.timebound.health.HealthEngine;
import io.micrometer.core.instrument.MeterRegistry;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.PoolMetrics;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactoryProvider;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Settings of a {@link RoutedDatabase}, each validated as it is set; a writer is required. Not
 * thread-safe.
 */
public final class RoutedDatabaseBuilder {
  private static final double SPILL = 0.5;
  private static final int UNKNOWN_POOL = 10;

  final Map<String, Supplier<PostgresqlConnectionConfiguration.Builder>> readers =
      new LinkedHashMap<>();
  String group = RoutedDatabase.GROUP;
  @Nullable HealthEngine engine;
  @Nullable MeterRegistry meters;
  @Nullable Duration heartbeat;

  private @Nullable ConnectionFactory writer;
  private int writerMaxSize;
  private double writerSpill = SPILL;
  private int readerMaxSize = 10;
  private int readerMinIdle;
  private int readerMaxPending = 256;
  private Duration acquireTimeout = Duration.ofMillis(150);
  private Duration dialTimeout = Duration.ofSeconds(10);
  private Duration proofTimeout = Duration.ofSeconds(1);
  private Duration releaseTimeout = Duration.ofSeconds(5);
  private Duration closeTimeout = Duration.ofSeconds(5);
  private Duration cancelGrace = Duration.ofMillis(100);
  private Duration cancelTimeout = Duration.ofMillis(800);
  private Duration maxLifetime = Duration.ofMinutes(30);
  private Duration idleTimeout = Duration.ofMinutes(10);
  private Duration defaultReadTimeout = Duration.ofSeconds(30);
  private Scheduler scheduler = Schedulers.parallel();

  RoutedDatabaseBuilder() {}

  /** Where writes go, and reads that no reader can serve. Required. Stays the caller's to close. */
  public RoutedDatabaseBuilder writer(ConnectionFactory writer) {
    this.writer = Settings.required("writer", writer);
    return this;
  }

  /**
   * Connections the writer's pool may hold. Default: what an r2dbc-pool says of itself, else 10.
   *
   * @param connections {@code >= 1}
   */
  public RoutedDatabaseBuilder writerMaxSize(int connections) {
    this.writerMaxSize = Settings.atLeast("writerMaxSize", connections, 1);
    return this;
  }

  /**
   * The share of the writer's pool that routed reads may take when no reader serves them; at least
   * one connection. Default 0.5. (PG-32)
   *
   * @param share above 0, up to 1
   */
  public RoutedDatabaseBuilder writerSpill(double share) {
    if (!(share > 0 && share <= 1)) {
      throw Settings.refused("writerSpill", share, "above 0, up to 1");
    }
    this.writerSpill = share;
    return this;
  }

  /**
   * Adds a reader: a streaming standby, or what stands for one.
   *
   * @param name in meters, log lines and the health engine; unique
   * @param config host, database, user, TLS: applied to each dial, for credentials that change.
   *     Session options and the event loop are set by the pool.
   */
  public RoutedDatabaseBuilder reader(
      String name, Consumer<? super PostgresqlConnectionConfiguration.Builder> config) {
    Settings.required("reader " + name, config);
    return reader(
        name,
        () -> {
          PostgresqlConnectionConfiguration.Builder builder =
              PostgresqlConnectionConfiguration.builder();
          config.accept(builder);
          return builder;
        });
  }

  /**
   * The same from a URL: {@code reader("replica-1", ConnectionFactoryOptions.parse(url))}. A {@code
   * pool} in it is refused: the pool is made here.
   */
  public RoutedDatabaseBuilder reader(String name, ConnectionFactoryOptions options) {
    Object driver =
        Settings.required("reader " + name, options).getValue(ConnectionFactoryOptions.DRIVER);
    if (!PostgresqlConnectionFactoryProvider.POSTGRESQL_DRIVER.equals(driver)
        && !PostgresqlConnectionFactoryProvider.LEGACY_POSTGRESQL_DRIVER.equals(driver)) {
      throw Settings.refused("reader " + name, "driver " + driver, "postgresql, without a pool");
    }
    return reader(name, () -> PostgresqlConnectionFactoryProvider.builder(options));
  }

  private RoutedDatabaseBuilder reader(
      String name, Supplier<PostgresqlConnectionConfiguration.Builder> config) {
    Settings.name("reader", name);
    if (readers.putIfAbsent(name, config) != null) {
      throw Settings.refused("reader", name, "not yet among the readers");
    }
    return this;
  }

  /** Connections each reader's pool may hold. Default 10, {@code >= 1}. */
  public RoutedDatabaseBuilder readerMaxSize(int connections) {
    this.readerMaxSize = Settings.atLeast("readerMaxSize", connections, 1);
    return this;
  }

  /**
   * Connections each reader's pool keeps. Default: a fifth of {@code readerMaxSize}, at least 1.
   * Times the processes it is what the reader holds at rest. (PG-1)
   *
   * @param connections {@code >= 1}, at most {@code readerMaxSize}
   */
  public RoutedDatabaseBuilder readerMinIdle(int connections) {
    this.readerMinIdle = Settings.atLeast("readerMinIdle", connections, 1);
    return this;
  }

  /** Reads that may wait for a reader's connection. Default 256, {@code >= 0}. (PG-5) */
  public RoutedDatabaseBuilder readerMaxPending(int reads) {
    this.readerMaxPending = Settings.atLeast("readerMaxPending", reads, 0);
    return this;
  }

  /** How long a read waits for a reader's connection. Default 150 ms, {@code > 0}. (PG-4) */
  public RoutedDatabaseBuilder acquireTimeout(Duration limit) {
    this.acquireTimeout = Settings.positive("acquireTimeout", limit);
    return this;
  }

  /** After it a dial is given up and its socket closed. Default 10 s, {@code > 0}. (PG-4) */
  public RoutedDatabaseBuilder dialTimeout(Duration limit) {
    this.dialTimeout = Settings.positive("dialTimeout", limit);
    return this;
  }

  /** How long a reader may take to prove itself. Default 1 s, {@code > 0}. (PG-10) */
  public RoutedDatabaseBuilder proofTimeout(Duration limit) {
    this.proofTimeout = Settings.positive("proofTimeout", limit);
    return this;
  }

  /** Bound of the check a connection passes on its way back. Default 5 s, {@code > 0}. (PG-15) */
  public RoutedDatabaseBuilder releaseTimeout(Duration limit) {
    this.releaseTimeout = Settings.positive("releaseTimeout", limit);
    return this;
  }

  /** Bound of a connection's close. Default 5 s, {@code > 0}. (PG-15) */
  public RoutedDatabaseBuilder closeTimeout(Duration limit) {
    this.closeTimeout = Settings.positive("closeTimeout", limit);
    return this;
  }

  /**
   * How long a statement whose caller left may take to end by itself before it is cancelled on the
   * server. Default 100 ms, {@code >= 0}. (PG-19)
   */
  public RoutedDatabaseBuilder cancelGrace(Duration limit) {
    this.cancelGrace = Settings.notNegative("cancelGrace", limit);
    return this;
  }

  /** Bound of a cancel request. Default 800 ms, {@code > 0}. (PG-19) */
  public RoutedDatabaseBuilder cancelTimeout(Duration limit) {
    this.cancelTimeout = Settings.positive("cancelTimeout", limit);
    return this;
  }

  /**
   * Age at which a reader connection is replaced, for each shortened by up to a tenth at random.
   * Default 30 min, {@code > 0}. (PG-1)
   */
  public RoutedDatabaseBuilder maxLifetime(Duration limit) {
    this.maxLifetime = Settings.positive("maxLifetime", limit);
    return this;
  }

  /** Idle time after which one above the floor is closed. Default 10 min, {@code > 0}. (PG-1) */
  public RoutedDatabaseBuilder idleTimeout(Duration limit) {
    this.idleTimeout = Settings.positive("idleTimeout", limit);
    return this;
  }

  /** Bound of a read whose caller has no deadline. Default 30 s, {@code > 0}. (PG-13) */
  public RoutedDatabaseBuilder defaultReadTimeout(Duration limit) {
    this.defaultReadTimeout = Settings.positive("defaultReadTimeout", limit);
    return this;
  }

  /**
   * Moves the heartbeat row on the writer that often, for reads with {@link Fence#maxStaleness}.
   * One process of many is enough, more do no harm. Default: not moved by this process; 500 ms is
   * usual.
   *
   * @param interval {@code >= 10 ms}, at most a day
   */
  public RoutedDatabaseBuilder heartbeat(Duration interval) {
    Settings.atLeast("heartbeat", interval, Duration.ofMillis(10));
    if (interval.compareTo(Duration.ofDays(1)) > 0) {
      throw Settings.refused("heartbeat", interval, "at most PT24H");
    }
    this.heartbeat = interval;
    return this;
  }

  /** The engine its readers stand in. Default: one of its own. */
  public RoutedDatabaseBuilder healthEngine(HealthEngine engine) {
    this.engine = Settings.required("healthEngine", engine);
    return this;
  }

  /** Name of its group there. Default {@value RoutedDatabase#GROUP}. */
  public RoutedDatabaseBuilder healthGroup(String name) {
    this.group = Settings.name("healthGroup", name);
    return this;
  }

  /** Where its meters go. Default: nowhere. */
  public RoutedDatabaseBuilder meters(MeterRegistry registry) {
    this.meters = Settings.required("meters", registry);
    return this;
  }

  /** Clock and timers; never disposed here. Default: the parallel one. */
  public RoutedDatabaseBuilder scheduler(Scheduler scheduler) {
    this.scheduler = Settings.required("scheduler", scheduler);
    return this;
  }

  /**
   * Dials nothing.
   *
   * @throws IllegalArgumentException where the writer is missing, the floor is above the most, or a
   *     reader has no host or user
   */
  public RoutedDatabase build() {
    return new RoutedDatabase(this);
  }

  /** What the driver misses is said now; where the config itself fails its dials tell. (PG-2) */
  private static void complete(
      String reader, Supplier<PostgresqlConnectionConfiguration.Builder> config) {
    PostgresqlConnectionConfiguration.Builder builder;
    try {
      builder = config.get();
    } catch (RuntimeException e) {
      return; // credentials that cannot be had now, say
    }
    try {
      builder.build();
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("reader " + reader + ": " + e.getMessage(), e);
    }
  }

  ConnectionFactory writer() {
    if (writer == null) {
      throw Settings.refused("writer", "none", "a connection factory");
    }
    return writer;
  }

  /** Of the writer's connections, for routed reads. */
  int writerPlaces() {
    int size = writerMaxSize;
    if (size == 0) {
      size =
          writer instanceof ConnectionPool pool
              ? pool.getMetrics().map(PoolMetrics::getMaxAllocatedSize).orElse(UNKNOWN_POOL)
              : UNKNOWN_POOL;
    }
    return Math.max(1, (int) (size * writerSpill));
  }

  PgSettings settings() {
    writer();
    int minIdle = readerMinIdle == 0 ? Math.max(1, readerMaxSize / 5) : readerMinIdle;
    if (minIdle > readerMaxSize) {
      throw Settings.refused("readerMinIdle", minIdle, "at most readerMaxSize, " + readerMaxSize);
    }
    readers.forEach(RoutedDatabaseBuilder::complete);
    return new PgSettings(
        readerMaxSize,
        minIdle,
        readerMaxPending,
        acquireTimeout,
        dialTimeout,
        proofTimeout,
        releaseTimeout,
        closeTimeout,
        cancelGrace,
        cancelTimeout,
        maxLifetime,
        idleTimeout,
        defaultReadTimeout,
        scheduler);
  }
}
