package dev.timebound.grpc;

import dev.timebound.health.HealthEngine;
import dev.timebound.health.HealthPolicy;
import io.grpc.ManagedChannel;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Objects;
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

  /** 100 years, as with deadlines. */
  private static final Duration LONGEST = Duration.ofDays(36_500);

  private final Function<? super ConnectionWatch, ? extends ManagedChannel> channels;
  private final ChannelProbe probe;
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
  private boolean healthChecks = true;
  private Duration suspectAfter = Duration.ofSeconds(1);
  private Duration probeTimeout = Duration.ofSeconds(1);
  private Duration probeInterval = Duration.ofSeconds(1);
  private Duration maxProbeInterval = Duration.ofSeconds(10);
  private Duration credentialsTimeout = Duration.ofSeconds(10);
  private double maxQuarantined = 0.5;
  private boolean penalties = true;
  private @Nullable Integer penalty;
  private Duration penaltyDuration = Duration.ofSeconds(5);
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
      throw invalid("name", "'" + name + "'", "not blank");
    }
    this.name = name;
    return this;
  }

  /**
   * Channels at the start, at least, and at most. Defaults 10, 4, 200. A start outside the bounds
   * is refused by {@link #build}.
   */
  public ChannelPoolBuilder channels(int initial, int min, int max) {
    this.initialChannels = atLeast("initialChannels", initial, 1);
    this.minChannels = atLeast("minChannels", min, 1);
    this.maxChannels = atLeast("maxChannels", max, 1);
    return this;
  }

  /** A pool of one size for good: {@code channels(n, n, n)} without resizing. */
  public ChannelPoolBuilder fixedChannels(int channels) {
    return channels(channels, channels, channels).resizing(false);
  }

  /** The band of open calls that a channel should carry at the peak. Defaults 1 and 25. (BT-2) */
  public ChannelPoolBuilder rpcsPerChannel(int min, int max) {
    this.minRpcsPerChannel = atLeast("minRpcsPerChannel", min, 1);
    this.maxRpcsPerChannel = atLeast("maxRpcsPerChannel", max, min);
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
    this.resizeInterval = positive("resizeInterval", interval);
    this.maxResizeStep = atLeast("maxResizeStep", maxStep, 1);
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
    this.warmTimeout = positive("warmTimeout", limit);
    return this;
  }

  /** Whether silent channels are suspected, probed and quarantined. Default true. */
  public ChannelPoolBuilder healthChecks(boolean on) {
    this.healthChecks = on;
    return this;
  }

  /**
   * How long a caller waits in vain, while another channel receives, before its channel is suspect.
   * Default 1 s; 10 ms at least. (BT-10)
   */
  public ChannelPoolBuilder suspectAfter(Duration silence) {
    this.suspectAfter = atLeast("suspectAfter", silence, SHORTEST);
    return this;
  }

  /** Time limit of a probe. Default 1 s. (BT-13) */
  public ChannelPoolBuilder probeTimeout(Duration limit) {
    this.probeTimeout = positive("probeTimeout", limit);
    return this;
  }

  /**
   * Time between probes of one channel: the first, and the most it backs off to. Defaults 1 s and
   * 10 s; the first is at least 10 ms. (BT-13)
   */
  public ChannelPoolBuilder probeInterval(Duration first, Duration max) {
    atLeast("probeInterval", first, SHORTEST);
    Objects.requireNonNull(max, "maxProbeInterval");
    if (max.compareTo(first) < 0) {
      throw invalid("maxProbeInterval", max, ">= probeInterval " + first);
    }
    this.probeInterval = bounded(first);
    this.maxProbeInterval = bounded(max);
    return this;
  }

  /**
   * How long a probe may take to get its credentials, before its own limit starts. Default 10 s.
   * (BT-14)
   */
  public ChannelPoolBuilder credentialsTimeout(Duration limit) {
    this.credentialsTimeout = positive("credentialsTimeout", limit);
    return this;
  }

  /**
   * The share of the pool that may be quarantined at a time, rounded down to channels. Default 0.5.
   * (BT-16)
   */
  public ChannelPoolBuilder maxQuarantined(double share) {
    if (!(share >= 0 && share <= 1)) {
      throw invalid("maxQuarantined", share, "0 to 1");
    }
    this.maxQuarantined = share;
    return this;
  }

  /** Whether a channel that failed counts as busier for a while. Default true. */
  public ChannelPoolBuilder penalties(boolean on) {
    this.penalties = on;
    return this;
  }

  /**
   * How many calls busier a channel that failed counts, and for how long. Defaults
   * maxRpcsPerChannel and 5 s. (BT-4)
   */
  public ChannelPoolBuilder penalty(int calls, Duration duration) {
    this.penalty = atLeast("penalty", calls, 1);
    this.penaltyDuration = positive("penaltyDuration", duration);
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
      throw invalid("minChannels", minChannels, "<= maxChannels " + maxChannels);
    }
    if (initialChannels < minChannels || initialChannels > maxChannels) {
      throw invalid("initialChannels", initialChannels, minChannels + " to " + maxChannels);
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
        policy(),
        scheduler == null ? Schedulers.parallel() : scheduler);
  }

  private HealthPolicy policy() {
    HealthPolicy.Builder policy =
        healthChecks
            ? HealthPolicy.silence(suspectAfter)
                .confirmedByProbe(probeTimeout)
                .probeInterval(probeInterval, maxProbeInterval)
                .prepareLimit(credentialsTimeout)
                .maxQuarantined(maxQuarantined)
            : HealthPolicy.loadOnly();
    if (penalties) {
      policy.penalty(penalty == null ? maxRpcsPerChannel : penalty, penaltyDuration);
    }
    return policy.build();
  }

  Function<? super ConnectionWatch, ? extends ManagedChannel> channels() {
    return channels;
  }

  ChannelProbe probe() {
    return probe;
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

  private static int atLeast(String setting, int value, int least) {
    if (value < least) {
      throw invalid(setting, value, ">= " + least);
    }
    return value;
  }

  private static Duration atLeast(String setting, Duration value, Duration least) {
    Objects.requireNonNull(value, setting);
    if (value.compareTo(least) < 0) {
      throw invalid(setting, value, ">= " + least);
    }
    return bounded(value);
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

  private static IllegalArgumentException invalid(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }
}
