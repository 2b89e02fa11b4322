package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.fetch.TopicPartition;
import dev.timebound.samples.kafka.group.Node;
import dev.timebound.samples.kafka.group.OffsetStore;
import dev.timebound.samples.kafka.log.Appended;
import dev.timebound.samples.kafka.log.ProducedBatch;
import dev.timebound.samples.kafka.log.TopicLog;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresServer;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.nio.ByteBuffer;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.message.MetadataResponseData;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;

/** Two gateways on one Postgres, and unchanged Java clients. */
@NullUnmarked // fields are set before each test
class PostgresTest {
  private static final PostgresServer SERVER = PostgresReplicaSet.shared().primary();
  private static final List<String> GATEWAYS = List.of("gateway-1", "gateway-2");
  private static final Duration LEASE = Duration.ofSeconds(15);

  private PostgresParts one;
  private PostgresParts other;
  private KafkaGateway first;
  private KafkaGateway second;

  @BeforeEach
  void start() {
    one = open(GATEWAYS.get(0));
    other = open(GATEWAYS.get(1));
    first = one.gateway().nodeId(1).groupDelay(Duration.ZERO).start().block();
    second = other.gateway().nodeId(2).groupDelay(Duration.ZERO).start().block();
  }

  private static PostgresParts open(String application) {
    PostgresqlConnectionFactory driver =
        new PostgresqlConnectionFactory(
            PostgresqlConnectionConfiguration.builder()
                .host(SERVER.host())
                .port(SERVER.port())
                .username(SERVER.user())
                .database(SERVER.database())
                .applicationName(application)
                .build());
    return PostgresParts.open(driver, 8, LEASE).block();
  }

  @AfterEach
  void stop() {
    stopGateways();
    for (String gateway : GATEWAYS) {
      Until.holds(() -> SERVER.sessions(gateway).isEmpty());
    }
    SERVER.execute(
        "DROP TABLE fetch_topic, fetch_partition, fetch_batch, fetch_transaction, kafka_producer");
    SERVER.execute("DROP TABLE kafka_group_slot, kafka_group_offset");
    SERVER.execute("DROP SEQUENCE kafka_producer_id");
  }

  private void stopGateways() {
    first.stop().block();
    second.stop().block();
    one.close().block();
    other.close().block();
  }

  @Test
  @DisplayName(
      "what is written to one gateway is read from the other, all, in order, once; and"
          + " after both have started anew")
  void across() throws Exception {
    for (int p = 0; p < 3; p++) {
      Clients.write(p % 2 == 0 ? first : second, "across", p, 400);
    }
    assertAll(second, "across", 400);

    stopGateways();
    start();

    assertAll(first, "across", 400);
  }

  private static void assertAll(KafkaGateway gateway, String topic, int count) {
    Map<Integer, List<String>> got = new HashMap<>();
    try (KafkaConsumer<String, String> consumer = Clients.consumer(gateway)) {
      consumer.assign(Clients.partitions(topic, 3));
      Clients.read(consumer, got, () -> Clients.count(got) >= 3 * count);
      assertThat(consumer.poll(Duration.ofMillis(100)).count()).isZero();
    }
    for (int p = 0; p < 3; p++) {
      assertThat(got.get(p)).isEqualTo(Clients.numbers(count));
    }
  }

  @Test
  @DisplayName("a producer that a partition does not know begins at 0")
  void unknownProducer() {
    TopicLog log = one.log();
    log.create("numbered", 1).block();
    long producer = log.newProducerId().block();
    assertThat(append(log, producer, 1)).isEqualTo(Appended.Outcome.OUT_OF_ORDER);
    assertThat(append(log, producer, 0)).isEqualTo(Appended.Outcome.WRITTEN);
    assertThat(append(other.log(), producer, 1)).isEqualTo(Appended.Outcome.WRITTEN);
  }

  private static Appended.Outcome append(TopicLog log, long producer, int sequence) {
    return log.append(new TopicPartition("numbered", 0), batch(producer, sequence))
        .block()
        .outcome();
  }

  private static ProducedBatch batch(long producer, int sequence) {
    return new ProducedBatch(ByteBuffer.allocate(100), 1, 1, producer, (short) 0, sequence);
  }

  @Test
  @DisplayName("many appends to partitions whose locks are held cost the others nothing")
  void locksHeld() throws Exception {
    int locked = 6;
    TopicLog log = one.log();
    log.create("numbered", locked + 2).block();
    Duration alone = fortyAppends(log, locked, 0);
    AtomicInteger written = new AtomicInteger();
    List<Disposable> stalled = new ArrayList<>();
    try (Connection lock = SERVER.connect("lock")) {
      lock.setAutoCommit(false);
      lock.createStatement()
          .execute(
              "SELECT * FROM fetch_partition WHERE topic = 'numbered' AND partition < "
                  + locked
                  + " FOR UPDATE");
      for (int i = 0; i < 60; i++) {
        stalled.add(
            log.append(new TopicPartition("numbered", i % locked), batch(-1, -1))
                .subscribe(any -> written.incrementAndGet(), error -> {}));
      }
      Until.holds(() -> appending() > 0);
      assertThat(fortyAppends(log, locked, 20))
          .as("beside %s without locks", alone)
          .isLessThan(alone.multipliedBy(3).plusSeconds(12));
      one.groups().of("g", new Node(1, "one", 9092)).block(Clients.PATIENCE);
      one.groups()
          .commit(
              "g",
              Map.of(new TopicPartition("numbered", 1), new OffsetStore.Committed(1, -1, "so far")))
          .block(Clients.PATIENCE);
      stalled.subList(0, 30).forEach(Disposable::dispose); // their clients left
      lock.rollback();
      Until.holds(() -> written.get() == 30);
    }
    for (int i = 0; i < locked; i++) {
      assertThat(log.store().offsets(new TopicPartition("numbered", i)).block().highWatermark())
          .isEqualTo(5);
    }
  }

  /** To two partitions, from that one on, each of which has so many batches; how long it takes. */
  private static Duration fortyAppends(TopicLog log, int partition, int before) {
    long began = System.nanoTime();
    for (int i = 0; i < 40; i++) {
      TopicPartition healthy = new TopicPartition("numbered", partition + i % 2);
      assertThat(log.append(healthy, batch(-1, -1)).block(Clients.PATIENCE).outcome())
          .isEqualTo(Appended.Outcome.WRITTEN);
      assertThat(log.store().offsets(healthy).block(Clients.PATIENCE).highWatermark())
          .isEqualTo(before + i / 2 + 1);
    }
    return Duration.ofNanos(System.nanoTime() - began);
  }

  private static long appending() {
    return SERVER.sessions(GATEWAYS.get(0)).stream()
        .filter(session -> session.query().contains("fetch_partition"))
        .filter(session -> session.state().equals("active"))
        .count();
  }

  @Test
  @DisplayName("FE-8 an append through one gateway wakes a long poll at the other")
  void wakes() throws Exception {
    Clients.write(first, "woken", 0, 1);
    Map<Integer, List<String>> got = new HashMap<>();
    try (KafkaConsumer<String, String> consumer =
        Clients.consumer(second, "fetch.max.wait.ms", 25_000)) {
      consumer.assign(Clients.partitions("woken", 1));
      Clients.read(consumer, got, () -> Clients.count(got) == 1);
      long began = System.nanoTime();
      Clients.write(first, "woken", 0, 10);
      Clients.read(consumer, got, () -> Clients.count(got) == 11);
      assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(20));
      consumer.close(CloseOptions.timeout(Duration.ZERO));
    }
  }

  @Test
  @DisplayName("writers at both gateways, a reader in the middle: no offset twice, none left out")
  void noGaps() throws Exception {
    int each = 2_000;
    Clients.write(first, "raced", 0, 1);
    CompletableFuture<Void> here = writes(first, each);
    CompletableFuture<Void> there = writes(second, each);
    List<Long> offsets = new ArrayList<>();
    try (KafkaConsumer<String, String> consumer = Clients.consumer(first)) {
      consumer.assign(Clients.partitions("raced", 1));
      long ends = System.nanoTime() + Clients.PATIENCE.toNanos();
      while (offsets.size() < 2 * each + 1 && System.nanoTime() - ends < 0) {
        consumer.poll(Duration.ofMillis(50)).forEach(record -> offsets.add(record.offset()));
      }
    }
    here.join();
    there.join();
    assertThat(offsets).hasSize(2 * each + 1);
    for (int i = 0; i < offsets.size(); i++) {
      assertThat(offsets.get(i)).isEqualTo(i);
    }
  }

  private static CompletableFuture<Void> writes(KafkaGateway gateway, int count) {
    return CompletableFuture.runAsync(
        () -> {
          try {
            Clients.write(gateway, "raced", 0, count);
          } catch (Exception e) {
            throw new IllegalStateException(e);
          }
        });
  }

  @Test
  @DisplayName(
      "a restart of the store loses nothing, doubles nothing, and clients go on by" + " themselves")
  void restart() throws Exception {
    for (int p = 0; p < 3; p++) {
      Clients.write(first, "restarted", p, 100);
    }
    Map<Integer, List<String>> got = new HashMap<>();
    try (KafkaConsumer<String, String> consumer = Clients.consumer(second)) {
      consumer.assign(Clients.partitions("restarted", 3));
      Clients.read(consumer, got, () -> Clients.count(got) == 300);
      SERVER.kill();
      consumer.poll(Duration.ofMillis(300));
      SERVER.restart();
      Clients.write(first, "restarted", 0, 100);
      Clients.read(consumer, got, () -> Clients.count(got) >= 400);
    }
    List<String> twice = new ArrayList<>(Clients.numbers(100));
    twice.addAll(Clients.numbers(100));
    assertThat(got.get(0)).isEqualTo(twice);
    assertThat(got.get(1)).isEqualTo(Clients.numbers(100));
  }

  @Test
  @DisplayName("FE-22 a client that goes while its statement hangs leaves none running")
  void goesInRead() throws Exception {
    Clients.write(first, "locked", 0, 10);
    try (Connection lock = SERVER.connect("lock");
        RawClient client = new RawClient(first)) {
      lock.setAutoCommit(false);
      lock.createStatement().execute("LOCK TABLE fetch_batch IN ACCESS EXCLUSIVE MODE");
      client.<MetadataResponseData>ask(Messages.metadata("locked"), 9);
      client.send(Messages.fetch("locked", 20_000, Map.of(0, 0L)), 12);
      Until.holds(() -> waitsForLock() == 1);

      client.close();

      Until.holds(() -> waitsForLock() == 0);
      lock.rollback();
    }
  }

  private static long waitsForLock() {
    return SERVER.sessions(GATEWAYS.get(0)).stream()
        .filter(session -> session.query().contains("fetch_batch"))
        .filter(session -> session.state().equals("active"))
        .count();
  }

  @Test
  @DisplayName(
      "members at two gateways are one group; when its gateway stops the group goes on at"
          + " the other, where it had committed")
  void oneGroup() throws Exception {
    for (int p = 0; p < 3; p++) {
      Clients.write(first, "grouped", p, 50);
    }
    Map<Integer, List<String>> got = new HashMap<>();
    try (KafkaConsumer<String, String> here = member(first);
        KafkaConsumer<String, String> there = member(second)) {
      here.subscribe(List.of("grouped"));
      there.subscribe(List.of("grouped"));
      Clients.read(
          here,
          got,
          () -> {
            add(got, there);
            return Clients.count(got) >= 150
                && here.assignment().size() + there.assignment().size() == 3
                && !here.assignment().isEmpty()
                && !there.assignment().isEmpty();
          });
      assertThat(first.groups() + second.groups()).isEqualTo(1);
      here.commitSync();
      there.commitSync();
      here.close(CloseOptions.timeout(Duration.ofSeconds(1)));
      first.stop().block();
      one.groups().close().block();

      for (int p = 0; p < 3; p++) {
        Clients.write(second, "grouped", p, 50);
      }
      Clients.read(there, got, () -> Clients.count(got) >= 300);
      there.commitSync();
      assertThat(second.groups()).isEqualTo(1);
    }
    List<String> twice = new ArrayList<>(Clients.numbers(50));
    twice.addAll(Clients.numbers(50));
    for (int p = 0; p < 3; p++) {
      assertThat(got.get(p)).isEqualTo(twice);
    }
  }

  private static KafkaConsumer<String, String> member(KafkaGateway gateway) {
    return Clients.consumer(
        gateway,
        "group.id",
        "both",
        // also before a rebalance takes partitions away
        "enable.auto.commit",
        true,
        "heartbeat.interval.ms",
        200,
        "session.timeout.ms",
        20_000);
  }

  private static void add(Map<Integer, List<String>> got, KafkaConsumer<String, String> consumer) {
    consumer
        .poll(Duration.ofMillis(50))
        .forEach(
            record ->
                got.computeIfAbsent(record.partition(), p -> new ArrayList<>())
                    .add(record.value()));
  }
}
