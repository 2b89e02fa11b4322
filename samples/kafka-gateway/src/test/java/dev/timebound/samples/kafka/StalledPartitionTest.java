package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.fetch.SharePolicy;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Partition 0 of three never answers an unchanged Java consumer that reads them all. */
@NullUnmarked // fields are set before each test
class StalledPartitionTest {
  private static final String TOPIC = "stalled";
  private static final int RECORDS = 300;

  private final FaultyLog log = new FaultyLog();
  private KafkaGateway gateway;

  private void start(KafkaGatewayBuilder builder) throws Exception {
    gateway = builder.groupDelay(Duration.ZERO).start().block();
    for (int p = 0; p < 3; p++) {
      Clients.write(gateway, TOPIC, p, RECORDS);
    }
  }

  @AfterEach
  void stop() {
    gateway.stop().block();
    assertThat(gateway.connections()).isZero();
    Until.holds(() -> log.hanging() == 0 && log.waiting() == 0);
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-2, FE-9, FE-10 the others come whole, in order, once; healed, it comes too")
  void othersFlow(SharePolicy policy) throws Exception {
    start(
        KafkaGateway.builder(log)
            .fetching(fetcher -> fetcher.policy(policy).extraTime(Duration.ofMillis(500))));
    log.stallReads(TOPIC, 0);
    Map<Integer, List<String>> got = new HashMap<>();
    try (KafkaConsumer<String, String> consumer = consumer()) {
      consumer.assign(Clients.partitions(TOPIC, 3));
      Clients.read(consumer, got, () -> Clients.count(got) >= 2 * RECORDS);
      assertThat(got).containsOnlyKeys(1, 2);
      Clients.write(gateway, TOPIC, 1, 10);
      Clients.read(consumer, got, () -> got.get(1).size() == RECORDS + 10);

      log.heal();
      Clients.read(consumer, got, () -> Clients.count(got) >= 3 * RECORDS + 10);
    }
    assertThat(got.get(0)).isEqualTo(Clients.numbers(RECORDS));
    assertThat(got.get(1).subList(0, RECORDS)).isEqualTo(Clients.numbers(RECORDS));
    assertThat(got.get(2)).isEqualTo(Clients.numbers(RECORDS));
  }

  @Test
  @DisplayName("FE-11 a partition whose offsets never come does not hold the others, nor reset")
  void stalledOffsets() throws Exception {
    start(KafkaGateway.builder(log).fetching(f -> f.extraTime(Duration.ofMillis(500))));
    Map<Integer, List<String>> got = new HashMap<>();
    try (KafkaConsumer<String, String> consumer = consumer()) {
      consumer.assign(Clients.partitions(TOPIC, 3));
      consumer.seek(new TopicPartition(TOPIC, 0), 100);
      consumer.seekToBeginning(List.of(new TopicPartition(TOPIC, 1), new TopicPartition(TOPIC, 2)));
      consumer.position(new TopicPartition(TOPIC, 1));
      log.stallOffsets(TOPIC, 0);
      Clients.read(consumer, got, () -> Clients.count(got) >= 2 * RECORDS);
      assertThat(got).containsOnlyKeys(1, 2);

      log.heal();
      Clients.read(consumer, got, () -> Clients.count(got) >= 3 * RECORDS - 100);
    }
    assertThat(got.get(0)).isEqualTo(Clients.numbers(RECORDS).subList(100, RECORDS));
  }

  @Test
  @DisplayName("FE-16 a stalled ListOffsets does not hold the other partitions'")
  void stalledListOffsets() throws Exception {
    start(KafkaGateway.builder(log).fetching(f -> f.listOffsetsDeadline(Duration.ofMillis(600))));
    log.stallOffsets(TOPIC, 0);
    try (KafkaConsumer<String, String> consumer = consumer()) {
      assertThat(consumer.endOffsets(Clients.partitions(TOPIC, 3).subList(1, 3)))
          .containsEntry(new TopicPartition(TOPIC, 1), (long) RECORDS);
      Map<Integer, List<String>> got = new HashMap<>();
      consumer.assign(Clients.partitions(TOPIC, 3));
      Clients.read(consumer, got, () -> Clients.count(got) >= 2 * RECORDS);
      assertThat(got).containsOnlyKeys(1, 2);
      log.heal();
      Clients.read(consumer, got, () -> Clients.count(got) >= 3 * RECORDS);
    }
  }

  @Test
  @DisplayName("FE-16 FE-20 nor the records of the others, however often it is asked for")
  void fetchesGoOn() throws Exception {
    start(KafkaGateway.builder(log));
    log.stallOffsets(TOPIC, 0);
    Map<Integer, List<String>> got = new HashMap<>();
    try (KafkaConsumer<String, String> consumer = consumer()) {
      consumer.assign(Clients.partitions(TOPIC, 3));
      Clients.read(consumer, got, () -> Clients.count(got) >= 2 * RECORDS);
      long began = System.nanoTime();
      for (int round = 1; round <= 5; round++) {
        Clients.write(gateway, TOPIC, 1, 10);
        int wanted = 2 * RECORDS + 10 * round;
        Clients.read(consumer, got, () -> Clients.count(got) >= wanted);
      }
      assertThat(Duration.ofNanos(System.nanoTime() - began))
          .as("of a ListOffsets that never comes there is one all the time")
          .isLessThan(Duration.ofSeconds(15));
      consumer.close(CloseOptions.timeout(Duration.ZERO));
    }
  }

  @Test
  @DisplayName("with nothing shared, nobody gets anything: what this is for")
  void nothingShared() throws Exception {
    start(KafkaGateway.builder(log).fetchingBy(client -> NothingShared.over(log.store())));
    log.stallReads(TOPIC, 0);
    try (KafkaConsumer<String, String> consumer = consumer()) {
      consumer.assign(Clients.partitions(TOPIC, 3));
      int got = 0;
      for (int i = 0; i < 30 || log.hanging() == 0; i++) {
        got += consumer.poll(Duration.ofMillis(100)).count();
      }
      assertThat(got).isZero();
      consumer.close(CloseOptions.timeout(Duration.ZERO));
    }
  }

  private KafkaConsumer<String, String> consumer() {
    return Clients.consumer(gateway, "fetch.max.wait.ms", 300);
  }
}
