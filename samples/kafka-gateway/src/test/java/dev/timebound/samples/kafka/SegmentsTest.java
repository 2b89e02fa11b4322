package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.fetch.segments.SegmentStore;
import dev.timebound.samples.kafka.group.FileOffsetStore;
import dev.timebound.samples.kafka.group.MemoryOffsetStore;
import dev.timebound.samples.kafka.group.OffsetStore;
import dev.timebound.samples.kafka.log.SegmentTopicLog;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@DisplayName("A log in segment files, with unchanged clients")
class SegmentsTest {
  @TempDir Path directory;

  private SegmentTopicLog open() {
    return Objects.requireNonNull(
        SegmentTopicLog.open(SegmentStore.builder(directory).segmentBytes(4096))
            .block(Clients.PATIENCE));
  }

  private static KafkaGateway serve(SegmentTopicLog log, int port) {
    return serve(log, port, new MemoryOffsetStore());
  }

  private static KafkaGateway serve(SegmentTopicLog log, int port, OffsetStore offsets) {
    return Objects.requireNonNull(
        KafkaGateway.builder(log)
            .offsets(offsets)
            .listen("127.0.0.1", port)
            .groupDelay(Duration.ofMillis(50))
            .start()
            .block(Clients.PATIENCE));
  }

  private static void stop(KafkaGateway gateway, SegmentTopicLog log) {
    gateway.stop().then(log.close()).block(Clients.PATIENCE);
  }

  private static Map<Integer, List<String>> all(KafkaGateway gateway, int count) {
    Map<Integer, List<String>> got = new HashMap<>();
    try (KafkaConsumer<String, String> consumer = Clients.consumer(gateway)) {
      consumer.assign(Clients.partitions("kept", 3));
      Clients.read(consumer, got, () -> Clients.count(got) >= count);
      assertThat(consumer.poll(Duration.ofMillis(200)).count()).isZero();
    }
    return got;
  }

  @Test
  @DisplayName("what was produced outlives the gateway: all records, in order, once")
  void reopened() throws Exception {
    SegmentTopicLog log = open();
    KafkaGateway gateway = serve(log, 0);
    for (int p = 0; p < 3; p++) {
      Clients.write(gateway, "kept", p, 500);
    }
    assertThat(all(gateway, 1500).get(1)).isEqualTo(Clients.numbers(500));
    stop(gateway, log);

    log = open();
    gateway = serve(log, 0);
    Clients.write(gateway, "kept", 1, 500);
    Map<Integer, List<String>> got = all(gateway, 2000);
    stop(gateway, log);

    List<String> twice = new ArrayList<>(Clients.numbers(500));
    twice.addAll(Clients.numbers(500));
    assertThat(got.get(0)).isEqualTo(Clients.numbers(500));
    assertThat(got.get(1)).isEqualTo(twice);
    assertThat(got.get(2)).isEqualTo(Clients.numbers(500));
  }

  @Test
  @DisplayName("a producer goes on over a restart, and each of its records is there once")
  void producerGoesOn() throws Exception {
    SegmentTopicLog log = open();
    KafkaGateway gateway = serve(log, 0);
    int port = gateway.port();
    List<java.util.concurrent.Future<?>> sent = new ArrayList<>();
    try (KafkaProducer<String, String> producer = Clients.producer(gateway, "linger.ms", 0)) {
      for (int i = 0; i < 3000; i++) {
        sent.add(producer.send(new ProducerRecord<>("kept", 0, null, String.valueOf(i))));
        if (i == 1000) {
          stop(gateway, log);
          log = open();
          gateway = serve(log, port);
        }
      }
      producer.flush();
    }
    for (java.util.concurrent.Future<?> each : sent) {
      each.get();
    }
    assertThat(all(gateway, 3000).get(0)).isEqualTo(Clients.numbers(3000));
    stop(gateway, log);
  }

  @Test
  @DisplayName("a group goes on where it had committed, over a restart of the gateway")
  void groupGoesOn() throws Exception {
    List<String> got = new ArrayList<>();
    for (int start = 0; start < 3; start++) {
      SegmentTopicLog log = open();
      FileOffsetStore offsets = new FileOffsetStore(directory.resolve("groups"));
      KafkaGateway gateway = serve(log, 0, offsets);
      Clients.write(gateway, "kept", 0, 20);
      Map<Integer, List<String>> now = new HashMap<>();
      try (KafkaConsumer<String, String> consumer =
          Clients.consumer(gateway, "group.id", "goes-on", "enable.auto.commit", false)) {
        consumer.subscribe(List.of("kept"));
        Clients.read(consumer, now, () -> Clients.count(now) >= 20);
        consumer.commitSync();
        assertThat(consumer.poll(Duration.ofMillis(100)).count()).isZero();
      }
      got.addAll(now.get(0));
      stop(gateway, log);
      offsets.close().block(Clients.PATIENCE);
    }
    List<String> thrice = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      thrice.addAll(Clients.numbers(20));
    }
    assertThat(got).isEqualTo(thrice);
  }
}
