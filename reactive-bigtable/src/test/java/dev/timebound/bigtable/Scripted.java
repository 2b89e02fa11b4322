package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.RowRange;
import dev.timebound.health.MemberHealth;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import dev.timebound.test.ScriptedCall;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import reactor.core.publisher.Flux;

/**
 * A client on a scripted server. Its gap timeout is {@link #GAP}; its close shows that nothing is
 * left of the reads, here and at the server.
 */
final class Scripted implements AutoCloseable {
  /**
   * Longer than a thread waits for a core of a busy machine: an answer that is under way is none.
   */
  static final Duration GAP = Duration.ofSeconds(1);

  static final Duration HOUR = Duration.ofHours(1);
  static final Duration BOUND = Duration.ofSeconds(30);
  static final String TABLE = "table";

  final ScriptedBigtable server;
  final BigtableClient client;
  private final int endpoint;

  Scripted(ScriptedBigtable server, int endpoint, UnaryOperator<BigtableClientBuilder> settings) {
    this.server = server;
    this.endpoint = endpoint;
    this.client =
        settings
            .apply(
                BigtableClient.builder()
                    .projectId("timebound")
                    .instanceId("test")
                    .endpoint("localhost", endpoint)
                    .plaintext(true)
                    .gapTimeout(GAP)
                    .backoff(Duration.ofMillis(1), Duration.ofMillis(20))
                    .pool(pool -> pool.fixedChannels(2)))
            .build();
    client.pool().warm().block(BOUND);
  }

  static Scripted start() {
    return start(settings -> settings);
  }

  static Scripted start(UnaryOperator<BigtableClientBuilder> settings) {
    return on(ScriptedBigtable.start(), settings);
  }

  static Scripted on(ScriptedBigtable server, UnaryOperator<BigtableClientBuilder> settings) {
    return new Scripted(server, server.port(), settings);
  }

  /** The whole table. */
  Flux<Row> all() {
    return client.readRows(Query.builder(TABLE).build());
  }

  Reader read() {
    return Reader.of(all(), Long.MAX_VALUE);
  }

  Reader read(Query.Builder query) {
    return Reader.of(client.readRows(query.build()), Long.MAX_VALUE);
  }

  /** A read that nobody asks a row of; its call has reached the server. */
  Reader unread() {
    int calls = server.readRows().calls().size();
    Reader reader = Reader.of(all(), 0);
    server.readRows().awaitCall(calls + 1);
    return reader;
  }

  List<ScriptedCall> calls() {
    return server.readRows().calls();
  }

  int port() {
    return endpoint;
  }

  static Query.Builder query() {
    return Query.builder(TABLE);
  }

  /** Keys from {@code from} to below {@code to}, in order. */
  static String[] keys(int from, int to) {
    return IntStream.range(from, to).mapToObj(Scripted::key).toArray(String[]::new);
  }

  static String key(int i) {
    return String.format("row-%05d", i);
  }

  /** As {@link #keys}, one message of {@code perMessage} rows after the other. */
  static Script rows(Script script, int from, int to, int perMessage) {
    Script all = script;
    for (int i = from; i < to; i += perMessage) {
      all = all.rows(keys(i, Math.min(to, i + perMessage)));
    }
    return all;
  }

  /** The number of the first row that a request, resumed or not, asks for. */
  static int from(ScriptedCall call) {
    ReadRowsRequest request = call.readRows();
    if (request.getRows().getRowRangesCount() == 0) {
      return 0;
    }
    RowRange range = request.getRows().getRowRanges(0);
    return Integer.parseInt(range.getStartKeyOpen().toStringUtf8().substring(4)) + 1;
  }

  /** The requests of all reads so far. */
  List<ReadRowsRequest> requests() {
    return calls().stream().map(ScriptedCall::readRows).toList();
  }

  /** Extra load of each channel, the failed ones first. */
  List<Integer> penalties() {
    List<Integer> all =
        new ArrayList<>(client.pool().channels().stream().map(MemberHealth::penalty).toList());
    all.sort((a, b) -> b - a);
    return all;
  }

  /**
   * Time passes in which something must NOT happen. No test is right because of it: a machine that
   * is slow only gives a fault less time to show.
   */
  static void letPass(Duration time) {
    long end = System.nanoTime() + time.toNanos();
    for (long left = time.toNanos(); left > 0; left = end - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
  }

  @Override
  public void close() {
    try {
      eventually(() -> assertThat(client.isIdle()).as("idle").isTrue());
      assertThat(client.pool().inFlight()).isZero();
      server.awaitOpenStreams(0);
      client.close();
      server.awaitOpenConnections(0);
    } finally {
      client.close();
      server.close();
    }
    eventually(
        () ->
            assertThat(Thread.getAllStackTraces().keySet())
                .noneMatch(thread -> thread.getName().startsWith("timebound-bigtable-")));
  }
}
