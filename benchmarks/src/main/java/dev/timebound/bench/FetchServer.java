package dev.timebound.bench;

import dev.timebound.fetch.PartitionFetcherBuilder;
import dev.timebound.fetch.segments.SegmentStore;
import dev.timebound.samples.kafka.KafkaGateway;
import dev.timebound.samples.kafka.log.MemoryTopicLog;
import dev.timebound.samples.kafka.log.SegmentTopicLog;
import dev.timebound.samples.kafka.log.TopicLog;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** What the fetch benchmarks read from, each in a JVM of its own with its defaults. */
enum FetchServer {
  KAFKA(
      "Kafka broker",
      List.of("-Xms1g", "-Xmx1g"),
      partitions -> {
        KafkaBroker broker = KafkaBroker.start(FetchLoad.TOPIC, partitions);
        return new Served(broker.port(), broker);
      }),
  MEMORY(
      "gateway, memory store",
      List.of("-Xms3g", "-Xmx3g"),
      partitions -> gateway(new MemoryTopicLog(), partitions, fetching -> {})),
  SEGMENTS("gateway, segment files", List.of("-Xms1g", "-Xmx1g"), FetchServer::segments),
  /** Partition 0 has records, and no read of it ever ends. */
  STALLED(
      "gateway, one partition stalled",
      List.of("-Xms1g", "-Xmx1g"),
      partitions -> gateway(new StalledLog(), partitions, fetching -> {})),
  /**
   * As a broker does with a read of remote storage: each request waits for it until a timer of 500
   * ms, and no partition is read last for having stalled.
   */
  STALLED_TIMER(
      "each request waits 500 ms (model)",
      List.of("-Xms1g", "-Xmx1g"),
      partitions ->
          gateway(
              new StalledLog(),
              partitions,
              fetching -> fetching.grace(Duration.ofMillis(500)).penalty(Duration.ofNanos(1))));

  private static final Duration PATIENCE = Duration.ofSeconds(30);

  private final String title;
  private final List<String> heap;
  private final Start start;

  FetchServer(String title, List<String> heap, Start start) {
    this.title = title;
    this.heap = heap;
    this.start = start;
  }

  String title() {
    return title;
  }

  /** The options of its JVM: heaps as they need them, and what Kafka's own script sets. */
  List<String> options() {
    return List.of(
        heap.get(0),
        heap.get(1),
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        "-XX:InitiatingHeapOccupancyPercent=35");
  }

  /** With the topic of {@link FetchLoad}. */
  Served start(int partitions) throws Exception {
    return start.with(partitions);
  }

  /** It listens at a port, and ends when it is closed. */
  record Served(int port, AutoCloseable end) {}

  private interface Start {
    Served with(int partitions) throws Exception;
  }

  private static Served segments(int partitions) throws IOException {
    Path directory = Files.createTempDirectory("fetch-segments");
    SegmentTopicLog log =
        Objects.requireNonNull(
            SegmentTopicLog.open(SegmentStore.builder(directory)).block(PATIENCE));
    Served gateway = gateway(log, partitions, fetching -> {});
    return new Served(
        gateway.port(),
        () -> {
          gateway.end().close();
          log.close().block(PATIENCE);
          delete(directory);
        });
  }

  private static void delete(Path directory) throws IOException {
    List<Path> all;
    try (Stream<Path> found = Files.walk(directory)) {
      all = found.sorted(Comparator.reverseOrder()).toList();
    }
    for (Path each : all) {
      Files.delete(each);
    }
  }

  private static Served gateway(
      TopicLog log, int partitions, Consumer<PartitionFetcherBuilder> fetching) {
    log.create(FetchLoad.TOPIC, partitions).block(PATIENCE);
    KafkaGateway gateway =
        Objects.requireNonNull(
            KafkaGateway.builder(log).fetching(fetching).start().block(PATIENCE));
    return new Served(gateway.port(), () -> gateway.stop().block(PATIENCE));
  }
}
