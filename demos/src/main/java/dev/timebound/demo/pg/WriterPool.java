package dev.timebound.demo.pg;

import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAccumulator;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;

/**
 * The writer's pool, the same for every variant: an r2dbc-pool of {@value #SIZE} with its defaults.
 * It notes how long who asks it for a connection waits.
 */
public final class WriterPool implements ConnectionFactory {
  /** Connections it may hold. */
  public static final int SIZE = 10;

  private final ConnectionPool pool;
  private final LongAccumulator worstNanos = new LongAccumulator(Math::max, 0);

  WriterPool(Servers servers) {
    pool =
        new ConnectionPool(
            ConnectionPoolConfiguration.builder(
                    new PostgresqlConnectionFactory(servers.writer().build()))
                .initialSize(SIZE)
                .maxSize(SIZE)
                .build());
  }

  /** Fills it. Blocks. */
  void fill() {
    pool.warmup().block();
  }

  @Override
  public Publisher<Connection> create() {
    return Mono.defer(
        () -> {
          long began = System.nanoTime();
          return pool.create().doFinally(end -> worstNanos.accumulate(System.nanoTime() - began));
        });
  }

  @Override
  public ConnectionFactoryMetadata getMetadata() {
    return pool.getMetadata();
  }

  /** The longest that anyone waited for a connection since the last {@link #forget()}. */
  public long worstWaitMillis() {
    return TimeUnit.NANOSECONDS.toMillis(worstNanos.get() + 999_999);
  }

  /** Begins to look for the longest wait anew. */
  public void forget() {
    worstNanos.reset();
  }

  /** How many connections are lent, and how many wait for one. */
  String state() {
    return pool.getMetrics()
        .map(m -> m.acquiredSize() + " lent, " + m.pendingAcquireSize() + " wait")
        .orElse("");
  }

  void close() {
    Closing.within(pool.disposeLater());
  }
}
