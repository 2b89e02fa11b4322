package dev.timebound.bigtable;

import com.google.auth.Credentials;
import dev.timebound.grpc.ChannelPoolBuilder;
import dev.timebound.health.HealthEngine;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.observation.ObservationRegistry;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Settings of a {@link BigtableClient}. Each setter validates at once, and its message names the
 * setting, the value and what was expected; what is missing is told by {@link #build}.
 */
public final class BigtableClientBuilder {
  private static final Logger LOG = LoggerFactory.getLogger(BigtableClient.class);

  /** Where an emulator listens, host:port: read by {@link #build} where no endpoint is set. */
  static final String EMULATOR_VARIABLE = "BIGTABLE_EMULATOR_HOST";

  private static final String SERVICE_HOST = "bigtable.googleapis.com";
  private static final int SERVICE_PORT = 443;

  /** 100 years, as with deadlines. */
  private static final Duration LONGEST = Duration.ofDays(36_500);

  private static final Duration SHORTEST_BACKOFF = Duration.ofMillis(1);

  /** gRPC sends none more often. */
  private static final Duration SHORTEST_KEEPALIVE = Duration.ofSeconds(10);

  private @Nullable String projectId;
  private @Nullable String instanceId;
  private String appProfileId = "";
  private @Nullable Credentials credentials;
  private @Nullable String host;
  private int port;
  private @Nullable Boolean plaintext;
  private Duration gapTimeout = Duration.ofSeconds(5);
  private int maxAttempts = 3;
  private Duration headersTimeout = Duration.ofSeconds(60);
  private Duration initialBackoff = Duration.ofMillis(10);
  private Duration maxBackoff = Duration.ofSeconds(1);
  private Duration keepaliveTime = Duration.ofSeconds(30);
  private Duration keepaliveTimeout = Duration.ofSeconds(10);
  private int streamWindowBytes = 256 << 10;
  private int maxInboundMessageBytes = 256 << 20;
  private @Nullable Executor deliverOn;
  private @Nullable Scheduler scheduler;
  private @Nullable HealthEngine health;
  private @Nullable MeterRegistry meters;
  private @Nullable ObservationRegistry observations;
  private Consumer<ChannelPoolBuilder> pool = builder -> {};

  BigtableClientBuilder() {}

  /** Required. */
  public BigtableClientBuilder projectId(String id) {
    this.projectId = named("projectId", id);
    return this;
  }

  /** Required. */
  public BigtableClientBuilder instanceId(String id) {
    this.instanceId = named("instanceId", id);
    return this;
  }

  /** The app profile that routes the requests. Default: the instance's own. */
  public BigtableClientBuilder appProfileId(String id) {
    this.appProfileId = Objects.requireNonNull(id, "appProfileId");
    return this;
  }

  /** What authenticates each request. Default none, as for an emulator. */
  public BigtableClientBuilder credentials(Credentials credentials) {
    this.credentials = Objects.requireNonNull(credentials, "credentials");
    return this;
  }

  /**
   * Where the service listens. Default: what the environment variable BIGTABLE_EMULATOR_HOST says,
   * in plain text; else bigtable.googleapis.com:443 over TLS.
   */
  public BigtableClientBuilder endpoint(String host, int port) {
    Objects.requireNonNull(host, "endpoint host");
    if (!isHost(host)) {
      throw invalid("endpoint host", "'" + host + "'", "a host name or an address");
    }
    if (port < 1 || port > 65535) {
      throw invalid("endpoint port", port, "1 to 65535");
    }
    this.host = host;
    this.port = port;
    return this;
  }

  /** Whether the endpoint is spoken to without TLS. Default false for a set endpoint. */
  public BigtableClientBuilder plaintext(boolean on) {
    this.plaintext = on;
    return this;
  }

  /**
   * How long a caller that asked for a row waits with nothing received before the read is taken up
   * on another channel. Default 5 s. (BT-30)
   */
  public BigtableClientBuilder gapTimeout(Duration gap) {
    this.gapTimeout = positive("gapTimeout", gap);
    return this;
  }

  /**
   * Attempts of a read without progress in between. Default 3; 1 turns retries and the gap timeout
   * off. (BT-33)
   */
  public BigtableClientBuilder maxAttempts(int attempts) {
    if (attempts < 1) {
      throw invalid("maxAttempts", attempts, ">= 1");
    }
    this.maxAttempts = attempts;
    return this;
  }

  /** How long an attempt waits for the response's headers, whoever asked for what. Default 60 s. */
  public BigtableClientBuilder headersTimeout(Duration limit) {
    this.headersTimeout = positive("headersTimeout", limit);
    return this;
  }

  /**
   * The pause before a retry, jittered: the first, and the most it grows to. Defaults 10 ms and 1
   * s; the first is at least 1 ms. (BT-34)
   */
  public BigtableClientBuilder backoff(Duration initial, Duration max) {
    Objects.requireNonNull(initial, "initialBackoff");
    Objects.requireNonNull(max, "maxBackoff");
    if (initial.compareTo(SHORTEST_BACKOFF) < 0) {
      throw invalid("initialBackoff", initial, ">= " + SHORTEST_BACKOFF);
    }
    if (max.compareTo(initial) < 0) {
      throw invalid("maxBackoff", max, ">= initialBackoff " + initial);
    }
    this.initialBackoff = bounded(initial);
    this.maxBackoff = bounded(max);
    return this;
  }

  /**
   * The HTTP/2 receive window of a stream, in bytes, fixed: what the server may send ahead of what
   * is read. Default 256 KiB. The same figure is the connection's window, which refills as data
   * arrives, read or not. One channel's throughput is bounded by about window / round-trip time.
   * (BT-40)
   */
  public BigtableClientBuilder streamWindowBytes(long bytes) {
    this.streamWindowBytes = positiveInt("streamWindowBytes", bytes);
    return this;
  }

  /**
   * How long a connection with open calls may be silent before it is sent a PING, and how long that
   * may go unanswered before the connection counts as dead: its calls end then, and reads go on
   * elsewhere. Defaults 30 s and 10 s; the first is at least 10 s, servers take offence at less.
   * (BT-44)
   */
  public BigtableClientBuilder keepalive(Duration time, Duration timeout) {
    Objects.requireNonNull(time, "keepaliveTime");
    if (time.compareTo(SHORTEST_KEEPALIVE) < 0) {
      throw invalid("keepaliveTime", time, ">= " + SHORTEST_KEEPALIVE);
    }
    this.keepaliveTimeout = positive("keepaliveTimeout", timeout);
    this.keepaliveTime = bounded(time);
    return this;
  }

  /** The largest message accepted, in bytes. Default 256 MiB. (BT-45) */
  public BigtableClientBuilder maxInboundMessageBytes(long bytes) {
    this.maxInboundMessageBytes = positiveInt("maxInboundMessageBytes", bytes);
    return this;
  }

  /**
   * Where rows are delivered, but for those that are there when they are asked for: the thread that
   * asks may hand them on. Default: a bounded executor of the client's own. A direct executor
   * delivers on the transport's event loop: quicker, and only for subscribers that never block,
   * since one that does stops every call of its channels.
   */
  public BigtableClientBuilder deliverOn(Executor executor) {
    this.deliverOn = Objects.requireNonNull(executor, "deliverOn");
    return this;
  }

  /** Where timers run. Default {@link Schedulers#parallel()}. */
  public BigtableClientBuilder scheduler(Scheduler scheduler) {
    this.scheduler = Objects.requireNonNull(scheduler, "scheduler");
    return this;
  }

  /** A health engine shared with other clients. Default one of the client's own. */
  public BigtableClientBuilder health(HealthEngine engine) {
    this.health = Objects.requireNonNull(engine, "health");
    return this;
  }

  /** Where meters are registered. Default none. */
  public BigtableClientBuilder meters(MeterRegistry registry) {
    this.meters = Objects.requireNonNull(registry, "meters");
    return this;
  }

  /**
   * Where each call is observed, from its subscription to its end, as a child of the observation
   * that stands in the Reactor Context under Micrometer's key. Its key values tell the outcome, the
   * attempts and where the deadline's time went; a cancel is no error. Handlers run on the thread
   * that subscribes and on the one that ends the call: one that blocks holds it up, what one throws
   * is logged. Default none. (DL-5)
   */
  public BigtableClientBuilder observations(ObservationRegistry registry) {
    this.observations = Objects.requireNonNull(registry, "registry");
    return this;
  }

  /** The channel pool's own settings: size, suspicion, probes, penalties. */
  public BigtableClientBuilder pool(Consumer<ChannelPoolBuilder> settings) {
    this.pool = this.pool.andThen(Objects.requireNonNull(settings, "pool"));
    return this;
  }

  /**
   * A client whose channels connect in the background: never blocks, and fails only for settings.
   *
   * @throws IllegalStateException where projectId or instanceId is missing
   * @throws IllegalArgumentException where settings contradict each other, or the emulator's
   *     variable does not parse
   */
  public BigtableClient build() {
    return build(System.getenv(EMULATOR_VARIABLE));
  }

  BigtableClient build(@Nullable String emulator) {
    Target target = target(emulator);
    BigtableSettings settings =
        new BigtableSettings(
            required("projectId", projectId),
            required("instanceId", instanceId),
            appProfileId,
            gapTimeout,
            maxAttempts,
            headersTimeout,
            initialBackoff,
            maxBackoff,
            scheduler == null ? Schedulers.parallel() : scheduler);
    if (credentials != null && target.plaintext()) {
      LOG.warn("credentials are sent to {} in plain text", target.host());
    }
    if (credentials == null && !target.plaintext()) {
      LOG.warn(
          "no credentials for {} over TLS: the service will refuse; an emulator needs plaintext(true)",
          target.host());
    }
    if (settings.retries() && headersTimeout.compareTo(gapTimeout) <= 0) {
      LOG.warn(
          "headersTimeout {} is not above gapTimeout {}: a wait for headers ends as DEADLINE_EXCEEDED before it can be"
              + " resumed as a gap",
          headersTimeout,
          gapTimeout);
    }
    return new BigtableClient(this, settings, target);
  }

  /** Where the channels go. */
  record Target(String host, int port, boolean plaintext) {}

  private Target target(@Nullable String emulator) {
    if (host != null) {
      return new Target(host, port, plaintext != null && plaintext);
    }
    if (emulator == null || emulator.isBlank()) {
      return new Target(SERVICE_HOST, SERVICE_PORT, plaintext != null && plaintext);
    }
    int colon = emulator.lastIndexOf(':');
    try {
      int emulatorPort = Integer.parseInt(emulator.substring(colon + 1));
      String emulatorHost = emulator.substring(0, Math.max(0, colon));
      if (isHost(emulatorHost) && emulatorPort >= 1 && emulatorPort <= 65535) {
        return new Target(emulatorHost, emulatorPort, true);
      }
    } catch (NumberFormatException e) {
      // said below
    }
    throw invalid(EMULATOR_VARIABLE, emulator, "host:port");
  }

  NettyChannelBuilder newChannel(Target target, Executor executor) {
    NettyChannelBuilder channel =
        NettyChannelBuilder.forAddress(target.host(), target.port())
            .executor(executor)
            // Every failure must reach this client's own rules. (BT-34)
            .disableRetry()
            .maxInboundMessageSize(maxInboundMessageBytes)
            // Fixed: the setter without "initial" turns the automatic growth off. (BT-40)
            .flowControlWindow(streamWindowBytes)
            // The pool looks after its connections itself. (BT-44)
            .idleTimeout(IDLE_TIMEOUT_OFF_DAYS, TimeUnit.DAYS)
            .keepAliveTime(keepaliveTime.toMillis(), TimeUnit.MILLISECONDS)
            .keepAliveTimeout(keepaliveTimeout.toMillis(), TimeUnit.MILLISECONDS);
    if (target.plaintext()) {
      channel.usePlaintext();
    }
    return channel;
  }

  /** grpc-java turns its idle timeout off from 30 days on. */
  private static final long IDLE_TIMEOUT_OFF_DAYS = 30;

  @Nullable Credentials credentials() {
    return credentials;
  }

  @Nullable Executor deliverOn() {
    return deliverOn;
  }

  void configure(ChannelPoolBuilder builder) {
    if (scheduler != null) {
      builder.scheduler(scheduler);
    }
    if (health != null) {
      builder.health(health);
    }
    if (meters != null) {
      builder.meters(meters);
    }
    pool.accept(builder);
  }

  @Nullable MeterRegistry meters() {
    return meters;
  }

  @Nullable ObservationRegistry observations() {
    return observations;
  }

  private static boolean isHost(String host) {
    return !host.isBlank() && host.chars().noneMatch(c -> c <= ' ' || c == '/' || c == '@');
  }

  private static String required(String setting, @Nullable String value) {
    if (value == null) {
      throw new IllegalStateException(setting + ": missing (expected: a name)");
    }
    return value;
  }

  private static String named(String setting, String value) {
    Objects.requireNonNull(value, setting);
    if (value.isBlank()) {
      throw invalid(setting, "'" + value + "'", "not blank");
    }
    return value;
  }

  private static Duration positive(String setting, Duration value) {
    Objects.requireNonNull(value, setting);
    if (value.isZero() || value.isNegative()) {
      throw invalid(setting, value, "> 0");
    }
    return bounded(value);
  }

  /**
   * Any length may be given; one that never passes in any case is cut, so that timers can tell it.
   */
  private static Duration bounded(Duration value) {
    return value.compareTo(LONGEST) > 0 ? LONGEST : value;
  }

  private static int positiveInt(String setting, long value) {
    if (value < 1 || value > Integer.MAX_VALUE) {
      throw invalid(setting, value, "1 to " + Integer.MAX_VALUE);
    }
    return (int) value;
  }

  private static IllegalArgumentException invalid(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }
}
