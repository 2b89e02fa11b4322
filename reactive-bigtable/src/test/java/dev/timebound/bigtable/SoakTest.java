package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.timebound.deadline.Deadlines;
import dev.timebound.test.BigtableEmulator;
import dev.timebound.test.BigtableTable;
import dev.timebound.test.FaultProxy;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Minutes of reads through a proxy that does one thing after the other to their connections, on the
 * real emulator: {@code mvn verify -Psoak}, for as many seconds as {@code -Dtimebound.soak.seconds}
 * says (180 by default), from the seed {@code -Dtimebound.soak.seed}.
 */
@Tag("soak")
@Timeout(value = 1, unit = TimeUnit.DAYS) // as long as it is told to
class SoakTest {
  private static final int ROWS = 2_000;
  private static final int READERS = 16;
  private static final int LONGEST_SCAN = 400;
  private static final long SECONDS = Long.getLong("timebound.soak.seconds", 180);
  private static final long SEED = Long.getLong("timebound.soak.seed", 20_260_101);

  private final BigtableTable table = BigtableEmulator.shared().createFreshTable("soak", "f");
  private final Queue<String> wrong = new ConcurrentLinkedQueue<>();
  private final LongAdder reads = new LongAdder();
  private final LongAdder cancelled = new LongAdder();
  private volatile boolean over;

  private static String key(int i) {
    return String.format("row-%05d", i);
  }

  @Test
  @DisplayName(
      "BT-31 BT-35 whatever befalls connections for minutes: no error, no row lost or twice")
  void soak() throws Exception {
    ByteString value = ByteString.copyFrom(new byte[500]);
    table.load(
        IntStream.range(0, ROWS)
            .mapToObj(i -> BigtableTable.entry(key(i), BigtableTable.cell("f", "q", value))));
    int threadsBefore = Thread.activeCount();
    try (FaultProxy proxy = FaultProxy.to("localhost", BigtableEmulator.shared().port())) {
      BigtableClient client =
          BigtableClient.builder()
              .projectId("timebound")
              .instanceId("test")
              .endpoint("localhost", proxy.port())
              .plaintext(true)
              .gapTimeout(Duration.ofSeconds(2))
              // what the proxy does may meet a read more often than a network's faults do
              .maxAttempts(1_000)
              .pool(pool -> pool.fixedChannels(6))
              .build();
      client.pool().warm().block(Duration.ofSeconds(30));
      Mono<Void> all =
          Flux.range(0, READERS).flatMap(i -> reader(client, SEED + i), READERS).then();
      var done = all.toFuture();
      faults(proxy);
      over = true;
      proxy.heal();
      done.get(120, TimeUnit.SECONDS);
      assertThat(wrong).isEmpty();
      assertThat(reads.sum()).isGreaterThan(SECONDS);
      assertThat(cancelled.sum()).isPositive();
      assertThat(client.pool().quarantinedCalls()).isPositive();
      assertThat(proxy.accepted()).as("connections made").isGreaterThan(12);
      eventually(() -> assertThat(client.isIdle()).isTrue());
      eventually(() -> assertThat(client.pool().channels()).allMatch(c -> c.open() == 0));
      client.close();
      eventually(() -> assertThat(client.pool().isTerminated()).isTrue());
      eventually(() -> assertThat(proxy.openClientSockets()).isZero());
    }
    eventually(() -> assertThat(Thread.activeCount()).isLessThanOrEqualTo(threadsBefore + 1));
    System.out.println("soak: " + reads.sum() + " reads, " + cancelled.sum() + " cancelled");
  }

  /** One read after the other until it is over: points and scans, forward and back, some left. */
  private Mono<Void> reader(BigtableClient client, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    return Mono.defer(() -> read(client, random))
        .onErrorResume(
            e -> {
              wrong.add(e.toString());
              return Mono.empty();
            })
        .repeat(() -> !over)
        .then();
  }

  private Mono<Void> read(BigtableClient client, SplittableRandom random) {
    int from = random.nextInt(ROWS);
    int rows = Math.min(ROWS - from, 1 + random.nextInt(LONGEST_SCAN));
    boolean reversed = random.nextBoolean();
    List<String> expected =
        IntStream.range(0, rows)
            .mapToObj(i -> key(reversed ? from + rows - 1 - i : from + i))
            .toList();
    Query query =
        Query.builder(table.id()).range(key(from), key(from + rows)).reversed(reversed).build();
    Flux<String> keys = client.readRows(query).map(row -> row.key().toStringUtf8());
    reads.increment();
    if (random.nextInt(10) == 0) {
      int taken = random.nextInt(rows);
      cancelled.increment();
      return bounded(keys.take(taken), expected.subList(0, taken));
    }
    return bounded(random.nextInt(4) == 0 ? keys.limitRate(7) : keys, expected);
  }

  private Mono<Void> bounded(Flux<String> keys, List<String> expected) {
    return keys.collectList()
        .transform(Deadlines.within(Duration.ofSeconds(90)))
        .doOnNext(
            seen -> {
              if (!seen.equals(expected)) {
                wrong.add("read " + seen + " (expected: " + expected + ")");
              }
            })
        .then();
  }

  private void faults(FaultProxy proxy) throws InterruptedException {
    SplittableRandom random = new SplittableRandom(SEED);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
    while (System.nanoTime() < end) {
      switch (random.nextInt(8)) {
        case 0 -> proxy.freezeEstablished();
        case 1, 2 -> proxy.freezeBusiest();
        case 3 -> proxy.cut();
        case 4 -> proxy.hangUp();
        case 5 -> proxy.delay(Duration.ofMillis(random.nextInt(30)));
        case 6 -> proxy.trickle(200_000);
        default -> {
          proxy.acceptAndReset();
          proxy.cut();
        }
      }
      TimeUnit.MILLISECONDS.sleep(200 + random.nextInt(4_000));
      proxy.heal();
      TimeUnit.MILLISECONDS.sleep(random.nextInt(1_000));
    }
  }
}
