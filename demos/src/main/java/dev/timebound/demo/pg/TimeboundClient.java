package dev.timebound.demo.pg;

import dev.timebound.health.MemberHealth;
import dev.timebound.pg.Fence;
import dev.timebound.pg.ReadOptions;
import dev.timebound.pg.RoutedDatabase;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** Timebound, as it comes. */
public final class TimeboundClient implements ReadWriteClient {
  /** What the demo's reads ask of their freshness. */
  public static final Duration STALENESS = Duration.ofSeconds(2);

  private static final Duration HEARTBEAT = Duration.ofMillis(500);

  private final WriterPool writer;
  private final SimpleMeterRegistry meters = new SimpleMeterRegistry();
  private final RoutedDatabase db;
  private final ReadOptions options;

  private TimeboundClient(Servers servers, @Nullable Duration staleness) {
    writer = new WriterPool(servers);
    var builder =
        RoutedDatabase.builder()
            .writer(writer)
            .writerMaxSize(WriterPool.SIZE)
            .reader("standby", servers::reader)
            .readerMaxSize(StockClient.READERS)
            .meters(meters);
    if (staleness != null) {
      builder.heartbeat(HEARTBEAT);
    }
    db = builder.build();
    options =
        staleness == null
            ? ReadOptions.defaults()
            : ReadOptions.defaults().fence(Fence.maxStaleness(staleness));
  }

  /** Reads ask for at most {@link #STALENESS}; the heartbeat moves. Blocks. */
  public static TimeboundClient connect(Servers servers) {
    return connected(new TimeboundClient(servers, STALENESS));
  }

  /** Reads ask for nothing, no heartbeat moves. Blocks. */
  public static TimeboundClient withoutFence(Servers servers) {
    return connected(new TimeboundClient(servers, null));
  }

  private static TimeboundClient connected(TimeboundClient client) {
    client.writer.fill();
    client.db.createHeartbeat().block();
    client.db.start();
    return client;
  }

  @Override
  public <T> Mono<T> reading(Function<Connection, Mono<T>> work) {
    return db.readMono(options, work);
  }

  @Override
  public Mono<Void> write(int id, long pulse) {
    return db.<Void>write(c -> Table.write(c, id, pulse)).then();
  }

  @Override
  public Map<String, Long> writerReasons() {
    Map<String, Long> counts = new TreeMap<>();
    for (Counter counter : meters.find("timebound.pg.routes").tag("target", "writer").counters()) {
      String reason = String.valueOf(counter.getId().getTag("reason"));
      if (!reason.equals("read_write_requested")) {
        counts.put(reason, (long) counter.count());
      }
    }
    return counts;
  }

  @Override
  public WriterPool writer() {
    return writer;
  }

  @Override
  public String readers() {
    return "reader's: "
        + gauge("timebound.pg.pool.acquired")
        + " lent, "
        + gauge("timebound.pg.pool.idle")
        + " idle, "
        + db.readers().stream()
            .map(MemberHealth::status)
            .map(String::valueOf)
            .findFirst()
            .orElse("");
  }

  private long gauge(String name) {
    Gauge gauge = meters.find(name).gauge();
    return gauge == null ? 0 : (long) gauge.value();
  }

  @Override
  public void close() {
    Closing.within(db.closeLater());
    writer.close();
    meters.close();
  }
}
