package dev.timebound.fetch;

import dev.timebound.health.HealthEngine;
import dev.timebound.health.KeyedHealth;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.observation.ObservationRegistry;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** Settings of a {@link PartitionFetcher}, each validated as it is set. Not thread-safe. */
public final class PartitionFetcherBuilder {
  private final PartitionStore store;
  private SharePolicy policy = SharePolicy.PARALLEL;
  private String name = "fetch";
  private Duration extraTime = Duration.ofSeconds(5);
  private Duration maxReadDeadline = Duration.ofSeconds(25);
  private Duration listOffsetsDeadline = Duration.ofSeconds(10);
  private Duration leastBudget = Duration.ofMillis(50);
  private Duration grace = Duration.ofMillis(20);
  private int atOnce = 8;
  private int most = 64;
  private Duration slowAfter = Duration.ofMillis(250);
  private Duration penalty = Duration.ofSeconds(30);
  private int mostPenalised = 10_000;
  private Duration warnEvery = Duration.ofSeconds(30);
  private Duration backgroundTime = Duration.ofSeconds(30);
  private int backgroundBytes = 1024 * 1024;
  private @Nullable Scheduler scheduler;
  private @Nullable HealthEngine health;
  private @Nullable MeterRegistry meters;
  private @Nullable ObservationRegistry observations;

  PartitionFetcherBuilder(PartitionStore store) {
    this.store = Objects.requireNonNull(store, "store");
  }

  /** How partitions share a request's time (FE-9). Default {@link SharePolicy#PARALLEL}. */
  public PartitionFetcherBuilder policy(SharePolicy how) {
    policy = Objects.requireNonNull(how, "policy");
    return this;
  }

  /**
   * Of its group in the health engine, and the meters' tag {@code fetcher}: one of its own for each
   * fetcher that shares either with another. Default {@code fetch}.
   */
  public PartitionFetcherBuilder name(String group) {
    name = Settings.name("name", group);
    return this;
  }

  /**
   * What is added to a request's max_wait for its read deadline, {@code >= 0}; default 5 s. Less
   * than what clients wait beyond it (FE-1).
   */
  public PartitionFetcherBuilder extraTime(Duration time) {
    extraTime = Settings.notNegative("extraTime", time);
    return this;
  }

  /** The longest read deadline, {@code > 0}; default 25 s: under the Java client's 30 s (FE-1). */
  public PartitionFetcherBuilder maxReadDeadline(Duration time) {
    maxReadDeadline = Settings.positive("maxReadDeadline", time);
    return this;
  }

  /** Of a whole {@code listOffsets}, {@code > 0}; default 10 s (FE-16). */
  public PartitionFetcherBuilder listOffsetsDeadline(Duration time) {
    listOffsetsDeadline = Settings.positive("listOffsetsDeadline", time);
    return this;
  }

  /**
   * A partition's storage budget where half of max_wait is less, as far as its share allows, {@code
   * >= 0}; default 50 ms. With 0 a client whose max_wait is 0 gets only what stores hold in memory.
   */
  public PartitionFetcherBuilder leastBudget(Duration time) {
    leastBudget = Settings.notNegative("leastBudget", time);
    return this;
  }

  /**
   * How long the other reads of a request under {@link SharePolicy#PARALLEL} may take once
   * min_bytes are in, {@code >= 0}; default 20 ms (FE-9).
   */
  public PartitionFetcherBuilder grace(Duration time) {
    grace = Settings.notNegative("grace", time);
    return this;
  }

  /** Partitions of a request read at the same time, {@code >= 1}; default 8 (FE-9). */
  public PartitionFetcherBuilder concurrency(int partitions) {
    atOnce = Settings.atLeast("concurrency", partitions, 1);
    return this;
  }

  /**
   * As {@link #concurrency}, with those whose read takes longer than {@link #slowAfter}, {@code >=
   * 1}; default 64. What is less than {@code concurrency} bounds that.
   */
  public PartitionFetcherBuilder maxConcurrency(int partitions) {
    most = Settings.atLeast("maxConcurrency", partitions, 1);
    return this;
  }

  /** When a read no longer counts toward {@link #concurrency}, {@code > 0}; default 250 ms. */
  public PartitionFetcherBuilder slowAfter(Duration time) {
    slowAfter = Settings.positive("slowAfter", time);
    return this;
  }

  /**
   * How long a partition that stalled is read last, {@code > 0}, from its last stall or until it
   * answers; default 30 s (FE-20).
   */
  public PartitionFetcherBuilder penalty(Duration time) {
    penalty = Settings.positive("penalty", time);
    return this;
  }

  /** Partitions held back at once, {@code >= 1}; default 10 000. */
  public PartitionFetcherBuilder maxPenalised(int partitions) {
    mostPenalised = Settings.atLeast("maxPenalised", partitions, 1);
    return this;
  }

  /** At most one warning of a stalled partition in this time, {@code > 0}; default 30 s (FE-23). */
  public PartitionFetcherBuilder warnEvery(Duration time) {
    warnEvery = Settings.positive("warnEvery", time);
    return this;
  }

  /**
   * How long an abandoned read of a store that {@link PartitionStore#finishesInBackground} goes on,
   * and is kept for its client, {@code > 0}; default 30 s from its start (FE-24).
   */
  public PartitionFetcherBuilder backgroundTime(Duration time) {
    backgroundTime = Settings.positive("backgroundTime", time);
    return this;
  }

  /** How many bytes of such a read are kept, {@code >= 1}; the batch that passes it is the last. */
  public PartitionFetcherBuilder backgroundBytes(int bytes) {
    backgroundBytes = Settings.atLeast("backgroundBytes", bytes, 1);
    return this;
  }

  /**
   * Clock and timers, where the caller brings no deadline with those of its own; never disposed by
   * the fetcher. Default: the parallel one.
   */
  public PartitionFetcherBuilder scheduler(Scheduler of) {
    scheduler = Objects.requireNonNull(of, "scheduler");
    return this;
  }

  /** Shared with others, and left open. Default: an engine of its own. */
  public PartitionFetcherBuilder health(HealthEngine engine) {
    health = Objects.requireNonNull(engine, "health");
    return this;
  }

  /** Default: nowhere. */
  public PartitionFetcherBuilder meters(MeterRegistry registry) {
    meters = Objects.requireNonNull(registry, "meters");
    return this;
  }

  /** Each request is one observation. Default: none. */
  public PartitionFetcherBuilder observations(ObservationRegistry registry) {
    observations = Objects.requireNonNull(registry, "observations");
    return this;
  }

  /**
   * @throws IllegalArgumentException where the health engine has a group of that name already
   */
  public PartitionFetcher build() {
    Scheduler clock = scheduler == null ? Schedulers.parallel() : scheduler;
    boolean own = health == null;
    HealthEngine engine = health == null ? ownEngine(clock) : health;
    KeyedHealth<TopicPartition> group = engine.keyed(name, penalty, mostPenalised);
    FetchMeters counts = FetchMeters.of(meters, name);
    FetchSettings settings =
        new FetchSettings(
            policy,
            extraTime,
            maxReadDeadline,
            listOffsetsDeadline,
            leastBudget,
            grace,
            atOnce,
            most,
            slowAfter,
            warnEvery,
            backgroundTime,
            backgroundBytes,
            clock);
    FetchParts parts =
        new FetchParts(
            store,
            settings,
            group,
            counts,
            FetchObservations.of(observations),
            new Abandonments(counts, clock, warnEvery),
            new CutLog(slowAfter.toNanos(), penalty.toNanos()));
    return new PartitionFetcher(parts, own ? engine::close : () -> engine.remove(group));
  }

  private HealthEngine ownEngine(Scheduler clock) {
    HealthEngine.Builder engine = HealthEngine.builder().scheduler(clock);
    if (meters != null) {
      engine.meters(meters);
    }
    return engine.build();
  }
}
