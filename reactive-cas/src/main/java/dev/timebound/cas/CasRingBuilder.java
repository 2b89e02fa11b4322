package dev.timebound.cas;

import dev.timebound.cas.CasConfig.Endpoint;
import dev.timebound.deadline.RetryBudget;
import dev.timebound.health.HealthEngine;
import io.grpc.ChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.TlsChannelCredentials;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.observation.ObservationRegistry;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.util.context.ContextView;

/**
 * Settings of a {@link CasRing}. Each setter validates at once, and its message names the setting,
 * the value and what was expected. Not thread-safe.
 */
public final class CasRingBuilder {
  /** gRPC sends none more often. */
  private static final Duration SHORTEST_KEEPALIVE = Duration.ofSeconds(10);

  private static final int MOST = 100;
  private static final int SMALLEST_CHUNK = 64 << 10;
  private static final int LARGEST_CHUNK = 1 << 20;

  private final CasConfig config;
  private String name = "cas";
  private @Nullable ShardSelector selector;
  private @Nullable HealthEngine healthEngine;
  private @Nullable Scheduler scheduler;
  private @Nullable MeterRegistry meters;
  private @Nullable ObservationRegistry observations;
  private @Nullable Executor deliverOn;
  private Duration cooldown = Duration.ofSeconds(5);
  private Duration rpcTimeout = Duration.ofSeconds(30);
  private Duration gapTimeout = Duration.ofSeconds(10);
  private Duration connectTimeout = Duration.ofSeconds(5);
  private Duration keepAliveTime = Duration.ofMinutes(5);
  private boolean resumeMidStream;
  private int retries = 3;
  private @Nullable RetryBudget retryBudget;
  private int writeChunkSize = SMALLEST_CHUNK;
  private boolean compression = true;
  private int connectionsPerEndpoint = 4;
  private DigestFunction digestFunction = DigestFunction.SHA256;
  private ChannelCredentials credentials = InsecureChannelCredentials.create();
  private Function<ContextView, Metadata> headers = context -> new Metadata();
  private boolean ownAuthorization;
  private @Nullable Mono<String> tokenSource;

  CasRingBuilder(CasConfig config) {
    this.config = Objects.requireNonNull(config, "config");
  }

  /**
   * What the health group and the meters call the ring; two rings on one health engine need two
   * names. Default {@code cas}.
   */
  public CasRingBuilder name(String name) {
    Objects.requireNonNull(name, "name");
    if (name.isBlank()) {
      throw SettingChecks.invalid("name", "'" + name + "'", "not blank");
    }
    this.name = name;
    return this;
  }

  /**
   * How digests map to shards. Default {@link CasConfig#weighted()}.
   *
   * @throws IllegalArgumentException where it is for another number of shards
   */
  public CasRingBuilder selector(ShardSelector selector) {
    Objects.requireNonNull(selector, "selector");
    if (selector.shards() != config.shards().size()) {
      throw SettingChecks.invalid(
          "selector", "for " + selector.shards() + " shards", config.shards().size() + " shards");
    }
    this.selector = selector;
    return this;
  }

  /** A health engine shared with other clients. Default one of the ring's own. */
  public CasRingBuilder healthEngine(HealthEngine engine) {
    this.healthEngine = Objects.requireNonNull(engine, "healthEngine");
    return this;
  }

  /**
   * Clock and timers: of attempts, gaps, retries and reconnects. A caller's deadline has its own.
   * Default {@link Schedulers#parallel()}.
   */
  public CasRingBuilder scheduler(Scheduler scheduler) {
    this.scheduler = Objects.requireNonNull(scheduler, "scheduler");
    return this;
  }

  /** Where meters are registered. Default none. */
  public CasRingBuilder meters(MeterRegistry registry) {
    this.meters = Objects.requireNonNull(registry, "meters");
    return this;
  }

  /**
   * Where each call is observed, as a child of the observation in the Reactor Context. Default
   * none.
   */
  public CasRingBuilder observations(ObservationRegistry registry) {
    this.observations = Objects.requireNonNull(registry, "observations");
    return this;
  }

  /**
   * Where what is read is delivered, but for what is there when it is asked for: the thread that
   * asks may hand that on. Default: a bounded executor of the ring's own. It must not run tasks on
   * the thread that hands them in. Subscribers must not block: they hold its threads, which every
   * call of the ring needs to go on.
   */
  public CasRingBuilder deliverOn(Executor executor) {
    this.deliverOn = Objects.requireNonNull(executor, "deliverOn");
    return this;
  }

  /**
   * How long a suspect shard is not a read's first choice, from its last failure; then one call
   * tries it. Default 5 s. (CAS-20)
   */
  public CasRingBuilder cooldown(Duration time) {
    this.cooldown = SettingChecks.positive("cooldown", time);
    return this;
  }

  /**
   * Bound of each unary call, and of a read up to its first chunk. Default 30 s; zero: none but the
   * caller's deadline. (CAS-3)
   */
  public CasRingBuilder rpcTimeout(Duration limit) {
    Objects.requireNonNull(limit, "rpcTimeout");
    if (limit.isNegative()) {
      throw SettingChecks.invalid("rpcTimeout", limit, ">= 0");
    }
    this.rpcTimeout = SettingChecks.bounded(limit);
    return this;
  }

  /**
   * How long a reader that asked for a chunk, after the first, waits with nothing received; and how
   * long a write may make no progress. Default 10 s. (CAS-3)
   */
  public CasRingBuilder gapTimeout(Duration gap) {
    this.gapTimeout = SettingChecks.positive("gapTimeout", gap);
    return this;
  }

  /**
   * Bound of each attempt to connect: name, TCP, TLS and the HTTP/2 handshake. Default 5 s. (CAS-2)
   */
  public CasRingBuilder connectTimeout(Duration limit) {
    this.connectTimeout = SettingChecks.positive("connectTimeout", limit);
    return this;
  }

  /**
   * How many connections an endpoint may have at most, one as a rule, more where its server takes
   * no more streams on one. Default 4; 1 to 100. (CAS-2c)
   */
  public CasRingBuilder connectionsPerEndpoint(int connections) {
    if (connections < 1 || connections > MOST) {
      throw SettingChecks.invalid("connectionsPerEndpoint", connections, "1 to " + MOST);
    }
    this.connectionsPerEndpoint = connections;
    return this;
  }

  /**
   * How long a connection with open calls may be silent before it is sent a PING. Default 5
   * minutes, at least 10 s; many servers answer more than one in 5 minutes with GOAWAY. (CAS-5)
   */
  public CasRingBuilder keepAliveTime(Duration time) {
    Objects.requireNonNull(time, "keepAliveTime");
    if (time.compareTo(SHORTEST_KEEPALIVE) < 0) {
      throw SettingChecks.invalid("keepAliveTime", time, ">= " + SHORTEST_KEEPALIVE);
    }
    this.keepAliveTime = SettingChecks.bounded(time);
    return this;
  }

  /**
   * Whether a read goes on after a failure when bytes have reached the caller, from the byte
   * reached, on the same shard or another. Default false. (CAS-22)
   */
  public CasRingBuilder resumeMidStream(boolean on) {
    this.resumeMidStream = on;
    return this;
  }

  /**
   * Attempts beyond the first without progress in between, where moving on to another shard does
   * not help. Default 3; 0 to 100. (CAS-4)
   */
  public CasRingBuilder retries(int retries) {
    if (retries < 0 || retries > MOST) {
      throw SettingChecks.invalid("retries", retries, "0 to " + MOST);
    }
    this.retries = retries;
    return this;
  }

  /** What retries are taken from. Default one of the ring's own, with its defaults. (CAS-4) */
  public CasRingBuilder retryBudget(RetryBudget budget) {
    this.retryBudget = Objects.requireNonNull(budget, "retryBudget");
    return this;
  }

  /**
   * Bytes of a piece of an upload, but for its last. Default 64 KiB, which is also the least; at
   * most 1 MiB. An upload's progress is counted in pieces: one that takes longer than gapTimeout is
   * taken for none. (CAS-3)
   */
  public CasRingBuilder writeChunkSize(int bytes) {
    if (bytes < SMALLEST_CHUNK || bytes > LARGEST_CHUNK) {
      throw SettingChecks.invalid("writeChunkSize", bytes, SMALLEST_CHUNK + " to " + LARGEST_CHUNK);
    }
    this.writeChunkSize = bytes;
    return this;
  }

  /**
   * Whether byte streams travel compressed with zstd where the server offers it and zstd-jni is on
   * the class path. Default true. (CAS-32)
   */
  public CasRingBuilder compression(boolean on) {
    this.compression = on;
    return this;
  }

  /** What makes the digests of blobs whose digest is not given. Default SHA-256. (CAS-32) */
  public CasRingBuilder digestFunction(DigestFunction function) {
    this.digestFunction = Objects.requireNonNull(function, "digestFunction");
    return this;
  }

  /** TLS, with the platform's trusted certificates. Default plain text. */
  public CasRingBuilder tls() {
    return credentials(TlsChannelCredentials.create());
  }

  /**
   * TLS, with the certificates trusted in this PEM file.
   *
   * @throws UncheckedIOException where it cannot be read
   * @throws IllegalArgumentException where it holds no certificates
   */
  public CasRingBuilder tls(Path trusted) {
    return credentials(Tls.of(trusted));
  }

  /**
   * Mutual TLS: the certificates trusted, this side's own certificate chain, and its private key in
   * PKCS#8, each a PEM file.
   *
   * @throws UncheckedIOException where one cannot be read
   * @throws IllegalArgumentException where one is not what it should be
   */
  public CasRingBuilder tls(Path trusted, Path certificates, Path privateKey) {
    return credentials(Tls.of(trusted, certificates, privateKey));
  }

  /** TLS of any other kind, as gRPC has it. Default plain text. */
  public CasRingBuilder credentials(ChannelCredentials credentials) {
    this.credentials = Objects.requireNonNull(credentials, "credentials");
    return this;
  }

  /**
   * Headers that every call carries. They replace those set before. Default none. An own {@code
   * authorization} and a {@link #tokenSource} are refused by {@link #build}.
   */
  public CasRingBuilder headers(Metadata headers) {
    Metadata own = new Metadata();
    own.merge(Objects.requireNonNull(headers, "headers"));
    headers(context -> own);
    this.ownAuthorization = own.containsKey(ShardCalls.AUTHORIZATION);
    return this;
  }

  /**
   * Headers of each call, from its subscriber's Context; called for each attempt, must not block.
   * They replace those set before. Default none. With a {@link #tokenSource} its token takes the
   * place of an {@code authorization} among them.
   */
  public CasRingBuilder headers(Function<ContextView, Metadata> headers) {
    this.headers = Objects.requireNonNull(headers, "headers");
    this.ownAuthorization = false;
    return this;
  }

  /**
   * Where the bearer token of the calls comes from: subscribed when the first call needs it and
   * once again whenever a server refused the present one as UNAUTHENTICATED, however many calls
   * were refused; each of those is tried once more. It has 30 s, and a call waits for it within its
   * own limits. Default none.
   */
  public CasRingBuilder tokenSource(Mono<String> source) {
    this.tokenSource = Objects.requireNonNull(source, "tokenSource");
    return this;
  }

  /**
   * A ring whose shards connect in the background: never blocks, and fails only for settings.
   *
   * @throws IllegalArgumentException where the name is taken in the health engine, or headers and
   *     tokenSource both authorize the calls
   */
  public CasRing build() {
    if (ownAuthorization && tokenSource != null) {
      throw SettingChecks.invalid("headers", "authorization", "none where tokenSource is set");
    }
    Scheduler timers = scheduler == null ? Schedulers.parallel() : scheduler;
    return new CasRing(
        this,
        new RingSettings(
            name,
            digestFunction,
            rpcTimeout,
            gapTimeout,
            connectTimeout,
            keepAliveTime,
            cooldown,
            resumeMidStream,
            retries,
            retryBudget == null ? RetryBudget.builder().scheduler(timers).build() : retryBudget,
            writeChunkSize,
            compression && Zstd.isAvailable(),
            connectionsPerEndpoint,
            timers));
  }

  // --- for the ring

  CasConfig config() {
    return config;
  }

  ShardSelector selector() {
    return selector == null ? config.weighted() : selector;
  }

  @Nullable HealthEngine healthEngine() {
    return healthEngine;
  }

  HealthEngine newEngine(Scheduler timers) {
    HealthEngine.Builder engine = HealthEngine.builder().scheduler(timers);
    return (meters == null ? engine : engine.meters(meters)).build();
  }

  @Nullable MeterRegistry meters() {
    return meters;
  }

  @Nullable ObservationRegistry observations() {
    return observations;
  }

  @Nullable Executor deliverOn() {
    return deliverOn;
  }

  Function<ContextView, Metadata> headerSource() {
    return headers;
  }

  @Nullable Tokens tokens(Scheduler timers) {
    return tokenSource == null ? null : new Tokens(tokenSource, timers);
  }

  NettyChannelBuilder newChannel(Endpoint endpoint, Executor executor) {
    return EndpointChannels.to(endpoint, credentials, connectTimeout, keepAliveTime)
        .executor(executor);
  }
}
