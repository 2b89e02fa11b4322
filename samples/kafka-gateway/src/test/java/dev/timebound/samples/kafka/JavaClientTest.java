package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.samples.kafka.log.MemoryTopicLog;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidCommitOffsetSizeException;
import org.apache.kafka.common.errors.TransactionalIdAuthorizationException;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/** An unchanged Java producer, which is idempotent by default, and consumer. */
@NullUnmarked // fields are set before each test
class JavaClientTest {
  private static KafkaGateway gateway;

  @BeforeAll
  static void start() {
    gateway =
        KafkaGateway.builder(new MemoryTopicLog())
            .groupDelay(Duration.ofMillis(50))
            .start()
            .block();
  }

  @AfterAll
  static void stop() {
    gateway.stop().block();
    assertThat(gateway.connections()).isZero();
    assertThat(gateway.groups()).isZero();
  }

  @Nested
  class Assigned {
    @Test
    @DisplayName("all records of all partitions, in order, once")
    void all() throws Exception {
      for (int p = 0; p < 3; p++) {
        Clients.write(gateway, "assigned", p, 500);
      }

      Map<Integer, List<String>> got = new HashMap<>();
      try (KafkaConsumer<String, String> consumer = Clients.consumer(gateway)) {
        consumer.assign(Clients.partitions("assigned", 3));
        Clients.read(consumer, got, () -> Clients.count(got) >= 1500);
        assertThat(consumer.poll(Duration.ofMillis(200)).count()).isZero();
      }

      assertThat(got.get(0)).isEqualTo(Clients.numbers(500));
      assertThat(got.get(1)).isEqualTo(Clients.numbers(500));
      assertThat(got.get(2)).isEqualTo(Clients.numbers(500));
    }

    @Test
    @DisplayName("a consumer at the end is woken by what is appended")
    void follows() throws Exception {
      Clients.write(gateway, "followed", 0, 1);
      Map<Integer, List<String>> got = new HashMap<>();
      try (KafkaConsumer<String, String> consumer =
          Clients.consumer(gateway, "fetch.max.wait.ms", 25_000)) {
        consumer.assign(Clients.partitions("followed", 1));
        Clients.read(consumer, got, () -> Clients.count(got) == 1);
        long began = System.nanoTime();
        Clients.write(gateway, "followed", 0, 10);
        Clients.read(consumer, got, () -> Clients.count(got) == 11);
        assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(20));
        consumer.close(CloseOptions.timeout(Duration.ZERO)); // else it waits for its long poll
      }
    }

    @Test
    @DisplayName("beginning and end of a partition, and the first record at or after a time")
    void offsets() throws Exception {
      Clients.write(gateway, "listed", 0, 5);
      TopicPartition partition = new TopicPartition("listed", 0);
      try (KafkaConsumer<String, String> consumer = Clients.consumer(gateway)) {
        assertThat(consumer.beginningOffsets(List.of(partition))).containsEntry(partition, 0L);
        assertThat(consumer.endOffsets(List.of(partition))).containsEntry(partition, 5L);
        assertThat(consumer.offsetsForTimes(Map.of(partition, 0L)).get(partition).offset())
            .isZero();
        assertThat(consumer.offsetsForTimes(Map.of(partition, Long.MAX_VALUE)).get(partition))
            .isNull();
        assertThat(consumer.partitionsFor("listed")).hasSize(KafkaGatewayBuilder.PARTITIONS);
      }
    }

    @Test
    @DisplayName("an administrator's offsets, that of the latest time too")
    void listedByAdmin() throws Exception {
      Clients.write(gateway, "asked", 0, 5);
      TopicPartition partition = new TopicPartition("asked", 0);
      try (Admin admin = Admin.create(Map.of("bootstrap.servers", gateway.bootstrapServers()))) {
        assertThat(listed(admin, partition, OffsetSpec.earliest())).isZero();
        assertThat(listed(admin, partition, OffsetSpec.latest())).isEqualTo(5);
        assertThat(listed(admin, partition, OffsetSpec.forTimestamp(0))).isZero();
        assertThat(listed(admin, partition, OffsetSpec.maxTimestamp()))
            .as("its batch")
            .isBetween(0L, 4L);
      }
    }

    @Test
    @DisplayName("a transactional producer is told that it may not be one")
    void transactional() {
      try (KafkaProducer<String, String> producer =
          Clients.producer(gateway, "transactional.id", "t")) {
        assertThatThrownBy(producer::initTransactions)
            .isInstanceOf(TransactionalIdAuthorizationException.class);
      }
    }

    private static long listed(Admin admin, TopicPartition partition, OffsetSpec which)
        throws Exception {
      return admin.listOffsets(Map.of(partition, which)).partitionResult(partition).get().offset();
    }
  }

  @Nested
  class Subscribed {
    @Test
    @DisplayName("a group's next consumer goes on where the one before it committed")
    void commits() throws Exception {
      Clients.write(gateway, "committed", 0, 20);
      Map<Integer, List<String>> got = new HashMap<>();
      try (KafkaConsumer<String, String> consumer =
          Clients.consumer(gateway, "group.id", "committers", "enable.auto.commit", false)) {
        consumer.subscribe(List.of("committed"));
        Clients.read(consumer, got, () -> Clients.count(got) == 20);
        consumer.commitSync(
            Map.of(new TopicPartition("committed", 0), new OffsetAndMetadata(15, "so far")));
      }
      Map<Integer, List<String>> rest = new HashMap<>();
      try (KafkaConsumer<String, String> consumer =
          Clients.consumer(gateway, "group.id", "committers", "enable.auto.commit", false)) {
        consumer.subscribe(List.of("committed"));
        Clients.read(consumer, rest, () -> Clients.count(rest) == 5);
      }
      assertThat(rest.get(0)).containsExactly("15", "16", "17", "18", "19");
    }

    @Test
    @DisplayName("words of a client that not every store can keep are refused for good")
    void noNul() throws Exception {
      Clients.write(gateway, "worded", 0, 1);
      try (KafkaConsumer<String, String> consumer =
          Clients.consumer(gateway, "group.id", "worders", "enable.auto.commit", false)) {
        TopicPartition partition = new TopicPartition("worded", 0);
        consumer.assign(List.of(partition));
        assertThatThrownBy(
                () -> consumer.commitSync(Map.of(partition, new OffsetAndMetadata(1, "a\0b"))))
            .isInstanceOf(InvalidCommitOffsetSizeException.class);
      }
    }

    @Test
    @DisplayName("two consumers of a group share the partitions, and each record comes once")
    void shares() throws Exception {
      for (int p = 0; p < 3; p++) {
        Clients.write(gateway, "shared", p, 10);
      }
      Map<Integer, List<String>> got = new HashMap<>();
      try (KafkaConsumer<String, String> one = Clients.consumer(gateway, "group.id", "sharers");
          KafkaConsumer<String, String> other = Clients.consumer(gateway, "group.id", "sharers")) {
        one.subscribe(List.of("shared"));
        Clients.read(one, got, () -> Clients.count(got) == 30);
        one.commitSync();
        other.subscribe(List.of("shared"));
        Clients.read(
            one,
            got,
            () -> {
              other.poll(Duration.ofMillis(50)).forEach(r -> add(got, r.partition(), r.value()));
              return !one.assignment().isEmpty()
                  && !other.assignment().isEmpty()
                  && one.assignment().size() + other.assignment().size() == 3;
            });
        assertThat(one.assignment()).doesNotContainAnyElementsOf(other.assignment());
        for (int p = 0; p < 3; p++) {
          Clients.write(gateway, "shared", p, 10);
        }
        Clients.read(
            one,
            got,
            () -> {
              other.poll(Duration.ofMillis(50)).forEach(r -> add(got, r.partition(), r.value()));
              return Clients.count(got) >= 60;
            });
      }
      for (int p = 0; p < 3; p++) {
        List<String> twice = new ArrayList<>(Clients.numbers(10));
        twice.addAll(Clients.numbers(10));
        assertThat(got.get(p)).isEqualTo(twice);
      }
    }

    private static void add(Map<Integer, List<String>> got, int partition, String value) {
      got.computeIfAbsent(partition, p -> new ArrayList<>()).add(value);
    }
  }
}
