package dev.timebound.demo.bigtable;

import com.google.protobuf.ByteString;
import dev.timebound.bigtable.BigtableClient;
import dev.timebound.bigtable.BigtableClientBuilder;
import dev.timebound.bigtable.Cell;
import dev.timebound.bigtable.Query;
import dev.timebound.bigtable.Row;
import dev.timebound.health.HealthEvent;
import dev.timebound.health.MemberHealth;
import dev.timebound.health.MemberStatus;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.StringJoiner;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.reactivestreams.Publisher;
import reactor.core.Disposable;

/** Timebound's client, with its defaults, or with what looks after stalls turned off. */
public final class TimeboundReadClient implements ReadClient {
  private static final Duration OFF = Duration.ofHours(1);

  private final BigtableClient client;
  private final String table;
  private final Queue<String> news = new ConcurrentLinkedQueue<>();
  private final AtomicInteger quarantined = new AtomicInteger();
  private final AtomicInteger restored = new AtomicInteger();
  private final Disposable events;

  private TimeboundReadClient(BigtableClientBuilder builder, Target target) {
    this.client = builder.build();
    this.table = target.table();
    this.events = client.pool().health().events().subscribe(this::count);
  }

  /** With its defaults. */
  public static TimeboundReadClient withDefaults(Target target) {
    return new TimeboundReadClient(builder(target), target);
  }

  /** The same without health checks, penalties and gap timeout: what these rules are worth. */
  public static TimeboundReadClient withRulesOff(Target target) {
    BigtableClientBuilder builder =
        builder(target)
            .gapTimeout(OFF)
            .headersTimeout(OFF.multipliedBy(2))
            .pool(pool -> pool.healthChecks(false).penalties(false));
    return new TimeboundReadClient(builder, target);
  }

  /** The client's settings for a plaintext server on this machine. */
  public static BigtableClientBuilder builder(Target target) {
    return BigtableClient.builder()
        .projectId(target.project())
        .instanceId(target.instance())
        .endpoint("localhost", target.port())
        .plaintext(true);
  }

  @Override
  public Publisher<DemoRow> point(String key) {
    return client.readRow(table, key).map(TimeboundReadClient::row);
  }

  @Override
  public Publisher<DemoRow> scan(String from, String to, long limit) {
    Query.Builder query = Query.builder(table).range(from, to);
    Query bounded = limit == 0 ? query.build() : query.limit(limit).build();
    return client.readRows(bounded).map(TimeboundReadClient::row);
  }

  @Override
  public String channels() {
    Map<MemberStatus, Integer> counts = new EnumMap<>(MemberStatus.class);
    for (MemberHealth channel : client.pool().channels()) {
      counts.merge(channel.status(), 1, Integer::sum);
    }
    StringJoiner text = new StringJoiner(", ");
    counts.forEach((status, count) -> text.add(count + " " + word(status)));
    return text.toString();
  }

  @Override
  public int quarantined() {
    return quarantined.get();
  }

  @Override
  public int restored() {
    return restored.get();
  }

  @Override
  public void close() {
    events.dispose();
    client.close();
  }

  @Override
  public List<String> news() {
    List<String> lines = new ArrayList<>();
    String line;
    while ((line = news.poll()) != null) {
      lines.add(line);
    }
    return lines;
  }

  private void count(HealthEvent event) {
    news.add(
        event.member()
            + ": "
            + word(event.from())
            + " -> "
            + word(event.to())
            + ", "
            + event.figure());
    if (event.to() == MemberStatus.QUARANTINED) {
      quarantined.incrementAndGet();
    } else if (event.from() == MemberStatus.QUARANTINED) {
      restored.incrementAndGet();
    }
  }

  private static String word(MemberStatus status) {
    return status.name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }

  private static DemoRow row(Row row) {
    ByteString value = ByteString.EMPTY;
    for (Cell cell : row.cells()) {
      value = value.concat(cell.value());
    }
    return new DemoRow(row.key().toStringUtf8(), value);
  }
}
