package dev.timebound.samples.kafka;

import dev.timebound.fetch.FetchClient;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.PartitionFetcher;
import dev.timebound.fetch.PartitionFetcherBuilder;
import dev.timebound.samples.kafka.group.GroupCoordinator;
import dev.timebound.samples.kafka.group.GroupHome;
import dev.timebound.samples.kafka.group.MemoryOffsetStore;
import dev.timebound.samples.kafka.group.OffsetStore;
import dev.timebound.samples.kafka.log.TopicLog;
import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Settings of a {@link KafkaGateway}, each validated as it is set. Not thread-safe. */
public final class KafkaGatewayBuilder {
  static final int PARTITIONS = 3;
  static final int FRAME_BYTES = 8 * 1024 * 1024;
  static final int BATCH_BYTES = 1024 * 1024 + 12;
  private static final Duration LIST_OFFSETS = Duration.ofSeconds(5);
  static final int FETCH_BYTES = 16 * 1024 * 1024;
  static final int SEND_BYTES = 512 * 1024;

  private final TopicLog log;
  private GroupHome home = GroupHome.ALONE;
  private OffsetStore offsets = new MemoryOffsetStore();
  private Consumer<PartitionFetcherBuilder> fetching = builder -> {};
  private Function<FetchClient, Function<FetchRequest, Mono<FetchResponse>>> fetchingBy =
      client -> client::fetch;
  private String host = "127.0.0.1";
  private int port;
  private @Nullable String advertisedHost;
  private int advertisedPort;
  private int nodeId;
  private int partitions = PARTITIONS;
  private boolean createTopics = true;
  private int maxFrameBytes = FRAME_BYTES;
  private int maxBatchBytes = BATCH_BYTES;
  private int maxFetchBytes = FETCH_BYTES;
  private int sendBufferBytes = SEND_BYTES;
  private Duration requestTime = Duration.ofSeconds(10);
  private Duration idleTime = Duration.ofMinutes(10);
  private Duration groupDelay = Duration.ofMillis(250);

  KafkaGatewayBuilder(TopicLog log) {
    this.log = Objects.requireNonNull(log, "log");
  }

  /** Where groups' offsets are kept. Default: in memory. */
  public KafkaGatewayBuilder offsets(OffsetStore store) {
    offsets = Objects.requireNonNull(store, "offsets");
    return this;
  }

  /** Where groups are coordinated. Default: all of them here, by this gateway alone. */
  public KafkaGatewayBuilder home(GroupHome where) {
    home = Objects.requireNonNull(where, "home");
    return this;
  }

  /**
   * Settings of the fetcher that this gateway reads through. Default: the fetcher's own, save 5 s
   * for a {@code listOffsetsDeadline}: a client's fetches wait behind it on its connection, and it
   * asks again. Over a store that takes longer to say where a partition begins, set more.
   */
  public KafkaGatewayBuilder fetching(Consumer<PartitionFetcherBuilder> settings) {
    fetching = Objects.requireNonNull(settings, "fetching");
    return this;
  }

  /**
   * What answers the Fetches of a connection. Default: the fetcher, {@code client ->
   * client::fetch}. For what is to be done around it, such as to measure, or to admit; and to read
   * without it, which gives up all that it is for: what a request then waits for is bounded by
   * nothing but its client.
   *
   * @param answers is asked once for each connection, with the face of the fetcher that is this
   *     connection's own and ends with it. What it returns is asked for one answer at a time, on an
   *     event loop, and cancelled where the client goes; an error of it is answered as one that the
   *     client tries again after
   */
  public KafkaGatewayBuilder fetchingBy(
      Function<FetchClient, Function<FetchRequest, Mono<FetchResponse>>> answers) {
    fetchingBy = Objects.requireNonNull(answers, "fetchingBy");
    return this;
  }

  /**
   * Where to listen. Default: a free port of the loopback.
   *
   * @param onPort 0 for a free one
   */
  public KafkaGatewayBuilder listen(String onHost, int onPort) {
    host = named("host", onHost);
    port = between("port", onPort, 0, 65_535);
    return this;
  }

  /**
   * What clients are told to connect to. Default: where it listens.
   *
   * @param asPort 0 for the port that it listens on
   */
  public KafkaGatewayBuilder advertise(String asHost, int asPort) {
    advertisedHost = named("advertisedHost", asHost);
    advertisedPort = between("advertisedPort", asPort, 0, 65_535);
    return this;
  }

  /** Among the gateways of one log, {@code >= 0}, unlike all others. Default 0. */
  public KafkaGatewayBuilder nodeId(int id) {
    nodeId = between("nodeId", id, 0, Integer.MAX_VALUE);
    return this;
  }

  /**
   * Of a topic that is made because a client asks for it, {@code 1..1000}. Default {@value
   * #PARTITIONS}.
   */
  public KafkaGatewayBuilder partitions(int count) {
    partitions = between("partitions", count, 1, 1000);
    return this;
  }

  /** Whether a topic is made where a client that allows it asks for it. Default true. */
  public KafkaGatewayBuilder createTopics(boolean create) {
    createTopics = create;
    return this;
  }

  /** The largest request, {@code >= 1024}; a larger one ends its connection. Default 8 MiB. */
  public KafkaGatewayBuilder maxFrameBytes(int bytes) {
    maxFrameBytes = between("maxFrameBytes", bytes, 1024, Integer.MAX_VALUE - 8);
    return this;
  }

  /** The largest record batch that is taken, {@code >= 1024}. Default 1 MiB, as a broker has it. */
  public KafkaGatewayBuilder maxBatchBytes(int bytes) {
    maxBatchBytes = between("maxBatchBytes", bytes, 1024, Integer.MAX_VALUE);
    return this;
  }

  /**
   * The most that one Fetch answers, whatever its client asks for, but for its first batch, {@code
   * >= 1024}: a connection holds that much. Default 16 MiB.
   */
  public KafkaGatewayBuilder maxFetchBytes(int bytes) {
    maxFetchBytes = between("maxFetchBytes", bytes, 1024, Integer.MAX_VALUE / 2);
    return this;
  }

  /**
   * What a connection may have sent and not yet acknowledged (SO_SNDBUF), {@code >= 4096}: as the
   * system takes it, which may take less. Default 512 KiB. Less is sent while it is still in the
   * processor's cache; more is for clients far away: a second's bytes are at most this over their
   * round trip.
   */
  public KafkaGatewayBuilder sendBufferBytes(int bytes) {
    sendBufferBytes = between("sendBufferBytes", bytes, 4096, Integer.MAX_VALUE / 2);
    return this;
  }

  /** For a request that names no time of its own, {@code > 0}. Default 10 s. */
  public KafkaGatewayBuilder requestTime(Duration time) {
    requestTime = positive("requestTime", time);
    return this;
  }

  /** After which a connection that sends nothing is closed, {@code > 0}. Default 10 min. */
  public KafkaGatewayBuilder idleTime(Duration time) {
    idleTime = positive("idleTime", time);
    return this;
  }

  /** How long an empty group waits for more members, {@code >= 0}. Default 250 ms. */
  public KafkaGatewayBuilder groupDelay(Duration delay) {
    if (Objects.requireNonNull(delay, "groupDelay").isNegative()) {
      throw refused("groupDelay", delay, ">= 0");
    }
    groupDelay = delay;
    return this;
  }

  /** Listens when the Mono emits; {@link KafkaGateway#stop} ends it. */
  public Mono<KafkaGateway> start() {
    return Mono.defer(
        () -> {
          GatewaySettings settings = settings();
          PartitionFetcherBuilder builder =
              PartitionFetcher.builder(log.store()).listOffsetsDeadline(LIST_OFFSETS);
          fetching.accept(builder);
          PartitionFetcher fetcher = builder.build();
          GroupCoordinator groups = new GroupCoordinator(Schedulers.parallel(), groupDelay);
          GatewayParts parts =
              new GatewayParts(settings, log, offsets, fetcher, groups, home, fetchingBy);
          return KafkaGateway.start(parts);
        });
  }

  private GatewaySettings settings() {
    return new GatewaySettings(
        host,
        port,
        advertisedHost == null ? host : advertisedHost,
        advertisedPort,
        nodeId,
        partitions,
        createTopics,
        maxFrameBytes,
        maxBatchBytes,
        maxFetchBytes,
        sendBufferBytes,
        requestTime,
        idleTime);
  }

  private static String named(String setting, String value) {
    if (Objects.requireNonNull(value, setting).isBlank()) {
      throw refused(setting, "'" + value + "'", "not blank");
    }
    return value;
  }

  private static int between(String setting, int value, int least, int most) {
    if (value < least || value > most) {
      throw refused(setting, value, least + ".." + most);
    }
    return value;
  }

  private static Duration positive(String setting, Duration value) {
    if (Objects.requireNonNull(value, setting).isZero() || value.isNegative()) {
      throw refused(setting, value, "> 0");
    }
    return value;
  }

  private static IllegalArgumentException refused(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }
}
