package dev.timebound.grpc;

import dev.timebound.health.HealthEngine;
import io.grpc.ManagedChannel;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Settings of a {@link ChannelPool}. Each setter validates at once, and its message names the
 * setting, the value and what was expected; settings that only make sense together are looked at by
 * {@link #build}.
 */
public final class ChannelPoolBuilder {
  /** The engine looks no closer. */
  private static final Duration SHORTEST = Duration.ofMillis(10);

  final Function<? super ConnectionWatch, ? extends ManagedChannel> channels;
  final ChannelProbe probe;
  private String name = "grpc";
  private int initialChannels = 10;
  private int minChannels = 4;
  private int maxChannels = 200;
  private int minRpcsPerChannel = 1;
  private int maxRpcsPerChannel = 25;
  private boolean resizing = true;
  private Duration resizeInterval = Duration.ofMinutes(1);
  private int maxResizeStep = 2;
  private boolean warming = true;
  private Duration warmTimeout = Duration.ofSeconds(10);
  private boolean refreshing = true;
  private Duration refreshAfter = Duration.ofMinutes(55);
  private boolean connectChecks = true;
  private Duration connectTimeout = Duration.ofSeconds(5);
  private int maxCancels;
  private Duration cancelInterval = Duration.ofSeconds(30);
  DoubleSupplier random = () -> ThreadLocalRandom.current().nextDouble();
  private final PoolPolicy policy = new PoolPolicy();
  private FailureClassifier classifier = FailureClassifier.standard();
  private @Nullable Scheduler scheduler;
  private @Nullable HealthEngine engine;
  private @Nullable MeterRegistry meters;

  ChannelPoolBuilder(
      Function<? super ConnectionWatch, ? extends ManagedChannel> channels, ChannelProbe probe) {
    this.channels = Objects.requireNonNull(channels, "channels");
    this.probe = Objects.requireNonNull(probe, "probe");
  }

  /**
   * Name of the pool's group in events and meters; its channels are name-1, name-2 …. Default
   * "grpc".
   */
  public ChannelPoolBuilder name(String name) {
    Objects.requireNonNull(name, "name");
    if (name.isBlank()) {
      throw Checks.invalid("name", "'" + name + "'", "not blank");
    }
    this.name = name;
    return this;
  }

  /**
   * Channels at the start, at least, and at most. Defaults 10, 4, 200. A start outside the bounds
   * is refused by {@link #build}.
   */
  public ChannelPoolBuilder channels(int initial, int min, int max) {
    this.initialChannels = Checks.atLeast("initialChannels", initial, 1);
    this.minChannels = Checks.atLeast("minChannels", min, 1);
    this.maxChannels = Checks.atLeast("maxChannels", max, 1);
    return this;
  }

  /** A pool of one size for good: {@code channels(n, n, n)} without resizing. */
  public ChannelPoolBuilder fixedChannels(int channels) {
    return channels(channels, channels, channels).resizing(false);
  }

  /** The band of open calls that a channel should carry at the peak. Defaults 1 and 25. (BT-2) */
  public ChannelPoolBuilder rpcsPerChannel(int min, int max) {
    this.minRpcsPerChannel = Checks.atLeast("minRpcsPerChannel", min, 1);
    this.maxRpcsPerChannel = Checks.atLeast("maxRpcsPerChannel", max, min);
    return this;
  }

  /** Whether the size follows the load. Default true. */
  public ChannelPoolBuilder resizing(boolean on) {
    this.resizing = on;
    return this;
  }

  /**
   * Time between resizes, and channels that one adds or drops at most. Defaults 1 minute and 2.
   * (BT-2)
   */
  public ChannelPoolBuilder resize(Duration interval, int maxStep) {
    this.resizeInterval = Checks.positive("resizeInterval", interval);
    this.maxResizeStep = Checks.atLeast("maxResizeStep", maxStep, 1);
    return this;
  }

  /** Whether new channels are connected and probed in the background. Default true. (BT-2) */
  public ChannelPoolBuilder warming(boolean on) {
    this.warming = on;
    return this;
  }

  /**
   * How long a channel that a resize adds may take to be warmed before it takes calls all the same.
   * Default 10 s.
   */
  public ChannelPoolBuilder warmTimeout(Duration limit) {
    this.warmTimeout = Checks.positive("warmTimeout", limit);
    return this;
  }

  /**
   * Whether channels are replaced before the server closes them for their age, in the background,
   * one at a time, each by one that has answered a probe. Default true. (BT-6)
   */
  public ChannelPoolBuilder refreshing(boolean on) {
    this.refreshing = on;
    return this;
  }

  /**
   * The age at which a channel is replaced at the latest, less up to a tenth by chance: below the
   * server's limit. Replacements are spread over that time, so that with n channels one goes every
   * n-th part of it. Default 55 minutes, for a limit of an hour; 10 ms at least. (BT-6)
   */
  public ChannelPoolBuilder refreshAfter(Duration age) {
    this.refreshAfter = Checks.atLeast("refreshAfter", age, SHORTEST);
    return this;
  }

  /**
   * Whether channels that try to connect for too long are avoided and replaced. Default true.
   * (BT-44)
   */
  public ChannelPoolBuilder connectChecks(boolean on) {
    this.connectChecks = on;
    return this;
  }

  /**
   * How long a channel may try to connect, failed attempts and pauses between them included, before
   * it is avoided while another is connected, and replaced once a new one has answered a probe:
   * calls that still wait on it then end with UNAVAILABLE, unsent. Default 5 s; 10 ms at least.
   * (BT-44)
   */
  public ChannelPoolBuilder connectTimeout(Duration limit) {
    this.connectTimeout = Checks.atLeast("connectTimeout", limit, SHORTEST);
    return this;
  }

  /**
   * How many calls a connection may cancel at the server in any interval of that length, for
   * servers that close a connection for too many resets (Netty's own: 200 in 30 s, those that
   * answer a reset with one of their own count two). A call cancelled beyond that ends for its
   * caller at once; the server is told when there is room. Resets that a call's own deadline sends
   * are counted and not held back. Default: no limit. (BT-21a)
   *
   * @param cancels 0 for no limit
   */
  public ChannelPoolBuilder maxCancelsPerInterval(int cancels, Duration interval) {
    this.maxCancels = Checks.atLeast("maxCancelsPerInterval", cancels, 0);
    this.cancelInterval = Checks.positive("cancelInterval", interval);
    return this;
  }

  /** From 0 to 1, of jitter. */
  ChannelPoolBuilder random(DoubleSupplier random) {
    this.random = random;
    return this;
  }

  /** Whether silent channels are suspected, probed and quarantined. Default true. */
  public ChannelPoolBuilder healthChecks(boolean on) {
    policy.healthChecks = on;
    return this;
  }

  /**
   * How long a caller waits in vain, while another channel receives, before its channel is suspect.
   * Default 1 s; 10 ms at least. (BT-10)
   */
  public ChannelPoolBuilder suspectAfter(Duration silence) {
    policy.suspectAfter = Checks.atLeast("suspectAfter", silence, SHORTEST);
    return this;
  }

  /** Time limit of a probe. Default 1 s. (BT-13) */
  public ChannelPoolBuilder probeTimeout(Duration limit) {
    policy.probeTimeout = Checks.positive("probeTimeout", limit);
    return this;
  }

  /**
   * Time between probes of one channel: the first, and the most it backs off to. Defaults 1 s and
   * 10 s; the first is at least 10 ms. (BT-13)
   */
  public ChannelPoolBuilder probeInterval(Duration first, Duration max) {
    Checks.atLeast("probeInterval", first, SHORTEST);
    Objects.requireNonNull(max, "maxProbeInterval");
    if (max.compareTo(first) < 0) {
      throw Checks.invalid("maxProbeInterval", max, ">= probeInterval " + first);
    }
    policy.probeInterval = Checks.bounded(first);
    policy.maxProbeInterval = Checks.bounded(max);
    return this;
  }

  /**
   * How long a probe may take to get its credentials, before its own limit starts. Default 10 s.
   * (BT-14)
   */
  public ChannelPoolBuilder credentialsTimeout(Duration limit) {
    policy.credentialsTimeout = Checks.positive("credentialsTimeout", limit);
    return this;
  }

  /**
   * The share of the pool that may be quarantined at a time, rounded down to channels. Default 0.5.
   * (BT-16)
   */
  public ChannelPoolBuilder maxQuarantined(double share) {
    if (!(share >= 0 && share <= 1)) {
      throw Checks.invalid("maxQuarantined", share, "0 to 1");
    }
    policy.maxQuarantined = share;
    return this;
  }

  /**
   * Whether a channel that is quarantined again and again is replaced, by one that has answered a
   * probe. Default true; never without health checks. (BT-18)
   */
  public ChannelPoolBuilder replacing(boolean on) {
    policy.replacing = on;
    return this;
  }

  /**
   * Which channel is replaced, and how often one is at most: that which was quarantined so many
   * times in that time, and more often than the pool's median by that factor. Defaults 3 times in 5
   * minutes, factor 2, one a minute. (BT-18)
   */
  public ChannelPoolBuilder replacement(
      int quarantines, Duration within, double timesTheMedian, Duration atMostEvery) {
    policy.offenderQuarantines = Checks.atLeast("replacement.quarantines", quarantines, 1);
    policy.offenderWithin = Checks.positive("replacement.within", within);
    if (!(timesTheMedian >= 0)) {
      throw Checks.invalid("replacement.timesTheMedian", timesTheMedian, ">= 0");
    }
    policy.offenderTimesMedian = timesTheMedian;
    policy.replaceEvery = Checks.positive("replacement.atMostEvery", atMostEvery);
    return this;
  }

  /** Whether a channel that failed counts as busier for a while. Default true. */
  public ChannelPoolBuilder penalties(boolean on) {
    policy.penalties = on;
    return this;
  }

  /**
   * How many calls busier a channel that failed counts, and for how long. Defaults
   * maxRpcsPerChannel and 5 s. (BT-4)
   */
  public ChannelPoolBuilder penalty(int calls, Duration duration) {
    policy.penalty = Checks.atLeast("penalty", calls, 1);
    policy.penaltyDuration = Checks.positive("penaltyDuration", duration);
    return this;
  }

  /**
   * How many calls busier a channel that comes back from quarantine counts, less and less over that
   * time, so that it takes its load in steps. Defaults maxRpcsPerChannel and 5 s; the time is at
   * least 10 ms. (HE-12)
   *
   * @param calls 0 for all at once
   */
  public ChannelPoolBuilder slowStart(int calls, Duration time) {
    policy.slowStart = Checks.atLeast("slowStart", calls, 0);
    policy.slowStartTime = Checks.atLeast("slowStartTime", time, SHORTEST);
    return this;
  }

  /**
   * From how a call ended to what that says of its channel. Default {@link
   * FailureClassifier#standard}.
   */
  public ChannelPoolBuilder classifier(FailureClassifier classifier) {
    this.classifier = Objects.requireNonNull(classifier, "classifier");
    return this;
  }

  /**
   * Where resizes and warm-ups run, and the pool's own engine. Default {@link
   * Schedulers#parallel()}.
   */
  public ChannelPoolBuilder scheduler(Scheduler scheduler) {
    this.scheduler = Objects.requireNonNull(scheduler, "scheduler");
    return this;
  }

  /** An engine shared with others. Default one of the pool's own, closed with it. */
  public ChannelPoolBuilder health(HealthEngine engine) {
    this.engine = Objects.requireNonNull(engine, "health");
    return this;
  }

  /** Where the pool's meters are registered, and its own engine's. Default none. */
  public ChannelPoolBuilder meters(MeterRegistry registry) {
    this.meters = Objects.requireNonNull(registry, "meters");
    return this;
  }

  /**
   * A pool whose channels connect in the background; never blocks, and fails only for settings that
   * do not fit.
   */
  public ChannelPool build() {
    if (minChannels > maxChannels) {
      throw Checks.invalid("minChannels", minChannels, "<= maxChannels " + maxChannels);
    }
    if (initialChannels < minChannels || initialChannels > maxChannels) {
      throw Checks.invalid("initialChannels", initialChannels, minChannels + " to " + maxChannels);
    }
    return new ChannelPool(this);
  }

  ChannelPoolSettings settings() {
    return new ChannelPoolSettings(
        name,
        initialChannels,
        minChannels,
        maxChannels,
        minRpcsPerChannel,
        maxRpcsPerChannel,
        resizing,
        resizeInterval,
        maxResizeStep,
        warming,
        warmTimeout,
        refreshing,
        refreshAfter,
        connectChecks,
        connectTimeout,
        maxCancels,
        cancelInterval,
        policy.suspectAfter,
        policy.build(maxRpcsPerChannel, warmTimeout),
        scheduler == null ? Schedulers.parallel() : scheduler);
  }

  FailureClassifier classifier() {
    return classifier;
  }

  @Nullable HealthEngine engine() {
    return engine;
  }

  @Nullable MeterRegistry meters() {
    return meters;
  }
}
