package dev.timebound.demo.pg;

import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.api.PostgresTransactionDefinition;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.R2dbcTimeoutException;
import io.r2dbc.spi.TransactionDefinition;
import io.r2dbc.spi.ValidationDepth;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import reactor.core.publisher.Mono;

/**
 * The stock way: an r2dbc-pool for each server, a connection pinged before it is lent, 150 ms for
 * all of that, a read-only transaction around the SELECT, and the writer where any of it fails.
 */
public final class StockClient implements ReadWriteClient {
  /** Connections its reader's pool may hold, as in Timebound's. */
  public static final int READERS = 10;

  private static final Duration ACQUIRE = Duration.ofMillis(150);
  private static final TransactionDefinition READ_ONLY =
      PostgresTransactionDefinition.mutability(false);

  private final ConnectionPool reader;
  private final WriterPool writer;
  private final Map<String, LongAdder> reasons = new ConcurrentHashMap<>();

  private StockClient(Servers servers, boolean validates) {
    ConnectionPoolConfiguration.Builder settings =
        ConnectionPoolConfiguration.builder(
                new PostgresqlConnectionFactory(servers.reader().build()))
            .initialSize(READERS)
            .maxSize(READERS);
    if (validates) {
      settings.validationDepth(ValidationDepth.REMOTE).maxAcquireTime(ACQUIRE);
    }
    reader = new ConnectionPool(settings.build());
    writer = new WriterPool(servers);
  }

  /** With its pools filled. Blocks. */
  public static StockClient connect(Servers servers) {
    return connected(new StockClient(servers, true));
  }

  /** The same without ping and acquire timeout: what is left is the transaction. */
  public static StockClient withoutValidation(Servers servers) {
    return connected(new StockClient(servers, false));
  }

  private static StockClient connected(StockClient client) {
    client.reader.warmup().block();
    client.writer.fill();
    return client;
  }

  @Override
  public <T> Mono<T> reading(Function<Connection, Mono<T>> work) {
    return transaction(reader, work)
        .onErrorResume(
            e -> {
              reasons.computeIfAbsent(reason(e), r -> new LongAdder()).increment();
              return transaction(writer, work);
            });
  }

  private static String reason(Throwable e) {
    return e instanceof R2dbcTimeoutException ? "acquire timeout" : "connection error";
  }

  /** As Spring's transaction manager runs it. */
  private static <T> Mono<T> transaction(
      ConnectionFactory from, Function<Connection, Mono<T>> work) {
    return Mono.usingWhen(
        from.create(),
        c -> Mono.from(c.beginTransaction(READ_ONLY)).then(Mono.defer(() -> work.apply(c))),
        c -> Mono.from(c.commitTransaction()).then(Mono.from(c.close())),
        (c, e) -> Mono.from(c.rollbackTransaction()).onErrorComplete().then(Mono.from(c.close())),
        c -> Mono.from(c.rollbackTransaction()).onErrorComplete().then(Mono.from(c.close())));
  }

  @Override
  public Mono<Void> write(int id, long pulse) {
    return Mono.usingWhen(
        writer.create(),
        c -> Mono.from(c.beginTransaction()).then(Mono.defer(() -> Table.write(c, id, pulse))),
        c -> Mono.from(c.commitTransaction()).then(Mono.from(c.close())),
        (c, e) -> Mono.from(c.rollbackTransaction()).onErrorComplete().then(Mono.from(c.close())),
        c -> Mono.from(c.rollbackTransaction()).onErrorComplete().then(Mono.from(c.close())));
  }

  @Override
  public Map<String, Long> writerReasons() {
    Map<String, Long> counts = new TreeMap<>();
    reasons.forEach((reason, count) -> counts.put(reason, count.sum()));
    return counts;
  }

  @Override
  public WriterPool writer() {
    return writer;
  }

  @Override
  public String readers() {
    return reader
        .getMetrics()
        .map(m -> "reader's: " + m.acquiredSize() + " lent, " + m.idleSize() + " idle")
        .orElse("");
  }

  @Override
  public void close() {
    Closing.within(reader.disposeLater());
    writer.close();
  }
}
