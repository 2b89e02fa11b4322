package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.ProduceResponseData;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** What one connection can cost: requests under way, bytes held, reads left behind. */
@NullUnmarked // fields are set before each test
class ConnectionTest {
  private static final String TOPIC = "held";
  private static final int PARTITIONS = 10;
  private static final int LARGE = 512 * 1024;

  private static FaultyLog log;
  private static KafkaGateway gateway;

  @BeforeAll
  static void start() {
    log = new FaultyLog();
    gateway = KafkaGateway.builder(log).partitions(PARTITIONS).start().block();
    try (RawClient client = new RawClient(gateway)) {
      client.<MetadataResponseData>ask(Messages.metadata(TOPIC), 9);
      client.<MetadataResponseData>ask(Messages.metadata("empty"), 9);
      for (int p = 0; p < PARTITIONS; p++) {
        ProduceResponseData written =
            client.ask(Messages.produce(TOPIC, p, -1, Messages.batchOf(LARGE)), 9);
        assertThat(Messages.only(written).errorCode()).isZero();
      }
    }
  }

  @AfterAll
  static void stop() {
    gateway.stop().block();
    assertNothingLeft();
    // a loop's thread ends a moment after it was told that the loop has
    Until.holds(
        () ->
            Thread.getAllStackTraces().keySet().stream()
                .noneMatch(thread -> thread.getName().startsWith("kafka-gateway")));
  }

  private static void assertNothingLeft() {
    Until.holds(() -> gateway.connections() == 0);
    Until.holds(() -> log.waiting() == 0 && log.hanging() == 0);
  }

  @BeforeEach
  void whole() {
    log.heal();
    assertNothingLeft();
  }

  private static FetchRequestData longPoll() {
    return Messages.fetch("empty", 20_000, Map.of(0, 0L));
  }

  @Test
  @DisplayName("answers come in the order of the requests, also behind a long poll")
  void order() {
    try (RawClient client = new RawClient(gateway)) {
      client.send(Messages.fetch("empty", 300, Map.of(0, 0L)), 12);
      client.send(Messages.metadata(TOPIC), 9);
      client.send(new ApiVersionsRequestData(), 0);

      assertThat(client.<FetchResponseData>answer().responses()).hasSize(1);
      assertThat(client.<MetadataResponseData>answer().topics()).hasSize(1);
      assertThat(client.<ApiVersionsResponseData>answer().apiKeys()).isNotEmpty();
    }
  }

  @Test
  @DisplayName("FE-25 a client that goes in a long poll leaves nothing that waits")
  void goesInLongPoll() {
    RawClient client = new RawClient(gateway);
    client.send(longPoll(), 12);
    Until.holds(() -> log.waiting() == 1);

    client.close();

    assertNothingLeft();
  }

  @Test
  @DisplayName("FE-22, FE-25 a client that goes while a read hangs cancels the read")
  void goesInRead() {
    log.stallReads(TOPIC, 3);
    RawClient client = new RawClient(gateway);
    client.send(Messages.fetch(TOPIC, 20_000, Map.of(3, 0L)), 12);
    Until.holds(() -> log.hanging() == 1);

    client.close();

    assertNothingLeft();
  }

  @Test
  @DisplayName("hundreds of fetches sent at once: one is under way, the others are not even read")
  void pileUp() {
    try (RawClient client = new RawClient(gateway)) {
      for (int i = 0; i < 400; i++) {
        client.send(longPoll(), 12);
      }
      Until.holds(() -> log.waiting() == 1);
      for (int i = 0; i < 20; i++) {
        assertThat(log.waiting()).isLessThanOrEqualTo(1);
        Thread.onSpinWait();
      }
    }
    assertNothingLeft();
  }

  @Test
  @DisplayName(
      "a client that does not read its answers is not read for; it gets all of them when it"
          + " does")
  void slowClient() throws Exception {
    Map<Integer, Long> all = everyPartition();
    int before = log.reads();
    try (RawClient client = new RawClient(gateway)) {
      int requests = 40;
      for (int i = 0; i < requests; i++) {
        client.send(Messages.fetch(TOPIC, 100, all), 12);
      }
      Until.holds(() -> log.reads() > before);
      int settled = settled();
      assertThat(settled - before).isLessThan(requests * PARTITIONS / 2);
      for (int i = 0; i < requests; i++) {
        FetchResponseData answer = client.answer();
        assertThat(answer.responses().get(0).partitions()).hasSize(PARTITIONS);
      }
    }
  }

  /** The number of reads once it stays the same for a while. */
  private static int settled() throws InterruptedException {
    int last = -1;
    int same = 0;
    while (same < 40) {
      int now = log.reads();
      same = now == last ? same + 1 : 0;
      last = now;
      Thread.sleep(5);
    }
    return last;
  }

  private static Map<Integer, Long> everyPartition() {
    Map<Integer, Long> all = new LinkedHashMap<>();
    for (int p = 0; p < PARTITIONS; p++) {
      all.put(p, 0L);
    }
    return all;
  }

  @Test
  @DisplayName("FE-9, FE-13 an answer never exceeds max_bytes by more than its first batch")
  void maxBytes() {
    try (RawClient client = new RawClient(gateway)) {
      FetchResponseData tight =
          client.ask(Messages.fetch(TOPIC, 100, everyPartition()).setMaxBytes(LARGE / 2), 12);
      assertThat(filled(tight)).isEqualTo(1);
      assertThat(client.answered).isLessThan(LARGE + 2048);

      FetchResponseData two =
          client.ask(
              Messages.fetch(TOPIC, 100, everyPartition()).setMaxBytes(LARGE * 2 + 4096), 12);
      assertThat(filled(two)).isBetween(1L, 2L);
      assertThat(client.answered).isLessThan(LARGE * 2 + 8192);
    }
  }

  private static long filled(FetchResponseData answer) {
    List<FetchResponseData.PartitionData> parts = answer.responses().get(0).partitions();
    return parts.stream().filter(part -> part.records().sizeInBytes() > 0).count();
  }

  @Test
  @DisplayName("the gateway's own limit holds, whatever the client asks for")
  void ownLimit() {
    KafkaGateway small = KafkaGateway.builder(log).maxFetchBytes(LARGE + 4096).start().block();
    try (RawClient client = new RawClient(small)) {
      FetchResponseData answer = client.ask(Messages.fetch(TOPIC, 100, everyPartition()), 12);
      assertThat(filled(answer)).isEqualTo(1);
    } finally {
      small.stop().block();
    }
  }

  @Test
  @DisplayName("a silent connection is closed")
  void idle() {
    KafkaGateway impatient =
        KafkaGateway.builder(log).idleTime(Duration.ofMillis(50)).start().block();
    try (RawClient client = new RawClient(impatient)) {
      assertThat(client.isEnded()).isTrue();
    } finally {
      impatient.stop().block();
    }
  }

  @Test
  @DisplayName("stop ends connections in a long poll, and all threads")
  void stopped() {
    KafkaGateway stopped = KafkaGateway.builder(log).start().block();
    try (RawClient client = new RawClient(stopped)) {
      client.send(longPoll(), 12);
      Until.holds(() -> log.waiting() == 1);

      stopped.stop().block();

      assertThat(client.isEnded()).isTrue();
      assertThat(stopped.connections()).isZero();
      Until.holds(() -> log.waiting() == 0);
    }
  }
}
