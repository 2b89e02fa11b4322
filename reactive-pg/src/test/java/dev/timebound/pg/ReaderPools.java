package dev.timebound.pg;

import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresServer;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.api.PostgresqlResult;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** Reader pools for a test, with settings to change, what they counted, and their end. */
final class ReaderPools implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(20);
  private static final AtomicInteger NAMES = new AtomicInteger();

  /** By which the servers know this test's sessions. */
  final String application = "reader-pool-" + NAMES.incrementAndGet();

  final Counts counts = new Counts();
  private final List<ReaderPool> pools = new ArrayList<>();

  static PgSettings settings(UnaryOperator<Values> change) {
    return change.apply(new Values()).settings();
  }

  ReaderPool to(PostgresServer server, UnaryOperator<Values> change) {
    return open(server.host(), server.port(), change, any -> {});
  }

  ReaderPool through(FaultProxy proxy, UnaryOperator<Values> change) {
    return open("127.0.0.1", proxy.port(), change, any -> {});
  }

  ReaderPool open(
      String host,
      int port,
      UnaryOperator<Values> change,
      Consumer<PostgresqlConnectionConfiguration.Builder> more) {
    ReaderPool pool =
        new ReaderPool(
            "reader",
            () -> {
              PostgresqlConnectionConfiguration.Builder builder =
                  PostgresqlConnectionConfiguration.builder();
              builder
                  .host(host)
                  .port(port)
                  .username("postgres")
                  .database("postgres")
                  .applicationName(application);
              more.accept(builder);
              return builder;
            },
            settings(change),
            counts);
    pools.add(pool);
    return pool;
  }

  /** Closes them and sees that no slot is taken, no dial is under way and no socket is open. */
  @Override
  public void close() {
    for (ReaderPool pool : pools) {
      pool.close().block(PATIENCE);
      until(
          "nothing is left of " + pool.name(),
          () -> pool.acquired() == 0 && pool.pending() == 0 && pool.openSockets() == 0,
          () ->
              pool.acquired()
                  + " acquired, "
                  + pool.pending()
                  + " pending, "
                  + pool.openSockets()
                  + " sockets");
    }
  }

  /** As {@link #close()}, and the servers have no session of them. */
  void closeWith(PostgresServer... servers) {
    close();
    for (PostgresServer server : servers) {
      until(
          server + " has no session of this test",
          () -> server.sessions(application).isEmpty(),
          () -> server.sessions(application).toString());
    }
  }

  static Lease acquire(ReaderPool pool) {
    Lease lease = pool.acquire(PATIENCE).block(PATIENCE);
    if (lease == null) {
      throw new AssertionError("no lease");
    }
    return lease;
  }

  static Mono<Void> run(Lease lease, String sql) {
    return lease
        .driver()
        .createStatement(sql)
        .execute()
        .flatMap(PostgresqlResult::getRowsUpdated)
        .then();
  }

  static @Nullable String value(Lease lease, String sql) {
    return lease
        .driver()
        .createStatement(sql)
        .execute()
        .flatMap(result -> result.map((row, any) -> String.valueOf(row.get(0))))
        .single()
        .block(PATIENCE);
  }

  static void until(
      String expected, BooleanSupplier condition, java.util.function.Supplier<String> seen) {
    long giveUp = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - giveUp > 0) {
        throw new AssertionError("expected: " + expected + "; but " + seen.get());
      }
      LockSupport.parkNanos(1_000_000);
    }
  }

  static void idleIs(ReaderPool pool, int expected) {
    until(expected + " idle", () -> pool.idle() == expected, () -> "there are " + pool.idle());
  }

  /** What a pool counted, by meter and tag. */
  static final class Counts extends PgMeters {
    private final Map<String, Integer> counted = new ConcurrentHashMap<>();

    @Override
    void closed(String reader, CloseReason reason) {
      counted.merge(reason.tag(), 1, Integer::sum);
    }

    @Override
    void dialled(String reader, String outcome) {
      counted.merge("dial " + outcome, 1, Integer::sum);
    }

    int of(CloseReason reason) {
      return counted.getOrDefault(reason.tag(), 0);
    }

    int dials(String outcome) {
      return counted.getOrDefault("dial " + outcome, 0);
    }

    Map<String, Integer> all() {
      return Map.copyOf(counted);
    }
  }

  /** Settings: the defaults, but for the acquire timeout, which is long. */
  static final class Values {
    int maxSize = 10;
    int minIdle = 2;
    int maxPending = 1_000;
    Duration acquireTimeout = PATIENCE;
    Duration dialTimeout = Duration.ofSeconds(10);
    Duration releaseTimeout = Duration.ofSeconds(5);
    Duration closeTimeout = Duration.ofSeconds(5);
    Duration cancelGrace = Duration.ofMillis(100);
    Duration cancelTimeout = Duration.ofMillis(800);
    Duration maxLifetime = Duration.ofMinutes(30);
    Duration idleTimeout = Duration.ofMinutes(10);
    Duration defaultReadTimeout = Duration.ofSeconds(30);
    Scheduler scheduler = Schedulers.parallel();

    Values scheduler(Scheduler of) {
      scheduler = of;
      return this;
    }

    Values size(int min, int max) {
      minIdle = min;
      maxSize = max;
      return this;
    }

    Values pending(int most) {
      maxPending = most;
      return this;
    }

    Values acquire(Duration bound) {
      acquireTimeout = bound;
      return this;
    }

    Values dial(Duration bound) {
      dialTimeout = bound;
      return this;
    }

    Values release(Duration bound) {
      releaseTimeout = bound;
      return this;
    }

    Values close(Duration bound) {
      closeTimeout = bound;
      return this;
    }

    Values grace(Duration bound) {
      cancelGrace = bound;
      return this;
    }

    Values cancel(Duration bound) {
      cancelTimeout = bound;
      return this;
    }

    Values ages(Duration lifetime, Duration idle) {
      maxLifetime = lifetime;
      idleTimeout = idle;
      return this;
    }

    PgSettings settings() {
      return new PgSettings(
          maxSize,
          minIdle,
          maxPending,
          acquireTimeout,
          dialTimeout,
          Duration.ofSeconds(1),
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
}
