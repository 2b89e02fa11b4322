package dev.timebound.health;

import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What makes a member of a group suspect, what confirms it, and what the choice makes of it.
 * Immutable. Built in one of these ways, each setting validated as it is set:
 *
 * <pre>{@code
 * HealthPolicy.silence(ofSeconds(1)).confirmedByProbe(ofSeconds(1)).penalty(25, ofSeconds(5)).maxQuarantined(0.5).build();
 * HealthPolicy.consecutiveFailures(3).cooldown(ofSeconds(5)).build();
 * HealthPolicy.consecutiveFailures(3).restoredByProbe(ofSeconds(1)).ownFallback().build();
 * HealthPolicy.loadOnly().penalty(25, ofSeconds(5)).build();
 * }</pre>
 */
public final class HealthPolicy {
  /** More than any member's open requests; two of them and those add up to a positive number. */
  private static final int HEAVIEST = 1 << 29;

  /** 0 where silence is no source of suspicion. */
  final long silenceNanos;

  /** 0 where failures are no source of suspicion. */
  final int failures;

  /** Null where no probe is sent. */
  final @Nullable Duration probeLimit;

  /** A suspicion needs no probe to put a member out. */
  final boolean suspicionPutsOut;

  final Duration probeFirst;
  final Duration probeMax;
  final Duration prepareLimit;

  /** 0 where no cooldown confirms. */
  final long cooldownNanos;

  /** 0 where failures do not penalise. */
  final int penaltyWeight;

  final long penaltyNanos;

  /** 1.0 where there is no cap. */
  final double maxQuarantined;

  final boolean ownFallback;

  /** 0 where nothing is replaced. */
  final int replaceTimes;

  /** The time in which quarantines make a repeat offender. */
  final long repeatNanos;

  final double replaceFactor;
  final long replaceEveryNanos;
  final Duration replaceLimit;

  /** 0 where a member takes all its load at once. */
  final int slowStartWeight;

  final long slowStartNanos;

  final boolean dryRun;

  private HealthPolicy(Builder b) {
    silenceNanos = b.silence == null ? 0 : Clock.nanos(b.silence);
    failures = b.failures;
    probeLimit = b.probeLimit;
    suspicionPutsOut = b.suspicionPutsOut;
    probeFirst = b.probeFirst;
    probeMax = b.probeMax;
    prepareLimit = b.prepareLimit;
    cooldownNanos = b.cooldown == null ? 0 : Clock.nanos(b.cooldown);
    penaltyWeight = Math.min(b.penaltyWeight, HEAVIEST);
    penaltyNanos = Clock.nanos(b.penaltyTime);
    maxQuarantined = b.maxQuarantined;
    ownFallback = b.ownFallback;
    replaceTimes = b.replaceTimes;
    repeatNanos = Clock.nanos(b.repeatTime);
    replaceFactor = b.replaceFactor;
    replaceEveryNanos = Clock.nanos(b.replaceEvery);
    replaceLimit = b.replaceLimit;
    slowStartWeight = Math.min(b.slowStartWeight, HEAVIEST);
    slowStartNanos = Clock.nanos(b.slowStartTime);
    dryRun = b.dryRun;
  }

  /**
   * A member is suspect when a caller has waited on it for {@code limit} ({@code >= 10 ms}) with
   * nothing received, while another member of the group received something (HE-3). Seen by sampling
   * at a tenth of the limit: up to two tenths later, never earlier.
   */
  public static Builder silence(Duration limit) {
    Builder b = new Builder();
    b.silence = Settings.atLeast("silence", limit, Duration.ofMillis(10));
    return b;
  }

  /**
   * A member is suspect after this many ({@code >= 1}) CONNECTION failures with no success, ANSWER
   * or OVERLOAD between them (HE-3).
   */
  public static Builder consecutiveFailures(int count) {
    Builder b = new Builder();
    b.failures = Settings.atLeast("consecutiveFailures", count, 1);
    return b;
  }

  /** Health checks are off: no member is ever suspect; the choice is by load and penalty. */
  public static Builder loadOnly() {
    return new Builder();
  }

  boolean checks() {
    return silenceNanos > 0 || failures > 0;
  }

  boolean probes() {
    return probeLimit != null;
  }

  /** Where {@link #probes}. */
  Duration probeLimit() {
    return Objects.requireNonNull(probeLimit);
  }

  /** How many of {@code size} members may be suspect or out before no more go out (HE-6). */
  int cap(int size) {
    // the epsilon keeps 0.29 * 100 at 29
    return (int) Math.floor(maxQuarantined * size + 1e-9);
  }

  /** Not thread-safe; {@link #build} may be called again. */
  public static final class Builder {
    private @Nullable Duration silence;
    private int failures;
    private @Nullable Duration probeLimit;
    private boolean suspicionPutsOut;
    private Duration probeFirst = Duration.ofSeconds(1);
    private Duration probeMax = Duration.ofSeconds(10);
    private Duration prepareLimit = Duration.ofSeconds(5);
    private @Nullable Duration cooldown;
    private int penaltyWeight;
    private Duration penaltyTime = Duration.ZERO;
    private double maxQuarantined = 1.0;
    private boolean ownFallback;
    private int replaceTimes;
    private Duration repeatTime = Duration.ofMinutes(5);
    private double replaceFactor;
    private Duration replaceEvery = Duration.ZERO;
    private Duration replaceLimit = Duration.ofSeconds(10);
    private int slowStartWeight;
    private Duration slowStartTime = Duration.ZERO;
    private boolean dryRun;

    private Builder() {}

    /**
     * A suspect is probed; only a failed probe puts it out, only an answered one brings it back
     * (HE-4).
     *
     * @param limit {@code > 0}; a probe with no answer by then has failed. Its preparation does not
     *     count.
     */
    public Builder confirmedByProbe(Duration limit) {
      probeLimit = Settings.positive("confirmedByProbe", limit);
      suspicionPutsOut = false;
      return this;
    }

    /**
     * Suspicion itself puts a member out, at once; it is probed from then on, and only an answered
     * probe brings it back. For a group whose adapter has somewhere else to go, so that no request
     * pays for the doubt (HE-4, PG-30). In place of {@link #confirmedByProbe}: the last one called
     * holds.
     *
     * @param limit {@code > 0}; a probe with no answer by then has failed. Its preparation does not
     *     count.
     */
    public Builder restoredByProbe(Duration limit) {
      probeLimit = Settings.positive("restoredByProbe", limit);
      suspicionPutsOut = true;
      return this;
    }

    /**
     * How long from the start of one probe of a member to the start of the next: {@code first},
     * then doubled each time up to {@code max}, with up to 20% of jitter on top; near {@code max}
     * the jitter takes away in its place, so that {@code max} is never passed. Never two probes of
     * one member at once. One that is quarantined again within 5 minutes (or the time given to
     * {@link #replaceRepeatOffenders}) begins with as many doublings as it was quarantined before
     * in that time; an answer restores it at once all the same (HE-12). Default 1 s and 10 s; the
     * same value twice means no backing off.
     *
     * @param first {@code >= 10 ms}
     * @param max {@code >= first}
     */
    public Builder probeInterval(Duration first, Duration max) {
      probeFirst = Settings.atLeast("probeInterval.first", first, Duration.ofMillis(10));
      probeMax = Settings.atLeast("probeInterval.max", max, first);
      return this;
    }

    /**
     * Bound of {@link Member#prepareProbe}, {@code > 0}; default 5 s. A probe whose preparation
     * fails or takes longer was not sent and counts neither way.
     */
    public Builder prepareLimit(Duration limit) {
      prepareLimit = Settings.positive("prepareLimit", limit);
      return this;
    }

    /**
     * Suspicion itself puts a member out, for {@code time} ({@code > 0}) from its last failure as a
     * first choice; then one request is let through as a trial (HE-4).
     */
    public Builder cooldown(Duration time) {
      cooldown = Settings.positive("cooldown", time);
      return this;
    }

    /**
     * A CONNECTION or OVERLOAD failure makes the member count as {@code weight} requests busier for
     * {@code time} from its last one (HE-5). Default: no penalty.
     *
     * @param weight {@code >= 0}; 0 switches the penalty off
     * @param time {@code > 0}
     */
    public Builder penalty(int weight, Duration time) {
      penaltyWeight = Settings.atLeast("penalty.weight", weight, 0);
      penaltyTime = Settings.positive("penalty.time", time);
      return this;
    }

    /**
     * The share of the group, rounded down, that may be out at once; and while more than that share
     * is suspect or out, no further one goes out (HE-6). Default 1.0: no cap.
     *
     * @param share from 0 (never any) to 1
     */
    public Builder maxQuarantined(double share) {
      if (!(share >= 0 && share <= 1)) {
        throw Settings.refused("maxQuarantined", share, "0 .. 1");
      }
      maxQuarantined = share;
      return this;
    }

    /**
     * Where every member is out, a pick gives none: the adapter has somewhere else to go. Default:
     * the first choice is given all the same (HE-6).
     */
    public Builder ownFallback() {
      ownFallback = true;
      return this;
    }

    /**
     * A member that was quarantined {@code times} times within {@code within}, and more than {@code
     * timesTheMedian} times as often as its group's median, is replaced by what its {@link
     * Member#replacement} gives, once that has answered a probe (HE-7). Of an even group the median
     * is the mean of the two in the middle; of a group of two, the other's. One replacement at a
     * time, and the next one begins {@code atMostEvery} after the last at the earliest, failed ones
     * included; one that must wait is told of, and tried when its time has come if it is still due.
     * Only with probes. Default: nothing is replaced.
     *
     * @param times {@code >= 1}
     * @param within {@code > 0}
     * @param timesTheMedian {@code >= 0}
     * @param atMostEvery {@code > 0}
     */
    public Builder replaceRepeatOffenders(
        int times, Duration within, double timesTheMedian, Duration atMostEvery) {
      replaceTimes = Settings.atLeast("replaceRepeatOffenders.times", times, 1);
      repeatTime = Settings.positive("replaceRepeatOffenders.within", within);
      if (!(timesTheMedian >= 0)) {
        throw Settings.refused("replaceRepeatOffenders.timesTheMedian", timesTheMedian, ">= 0");
      }
      replaceFactor = timesTheMedian;
      replaceEvery = Settings.positive("replaceRepeatOffenders.atMostEvery", atMostEvery);
      return this;
    }

    /**
     * How long making a replacement and having it answer a probe may take, {@code > 0}; default 10
     * s. Within that it is probed again and again, by the {@link #probeInterval}.
     */
    public Builder replacementLimit(Duration limit) {
      replaceLimit = Settings.positive("replacementLimit", limit);
      return this;
    }

    /**
     * A member that comes back from quarantine counts as {@code weight} requests busier, which goes
     * down to 0 in up to ten equal steps over {@code time} (HE-12). Default: it takes all its load
     * at once.
     *
     * @param weight {@code >= 0}; 0 switches the slow start off
     * @param time {@code >= 10 ms}
     */
    public Builder slowStart(int weight, Duration time) {
      slowStartWeight = Settings.atLeast("slowStart.weight", weight, 0);
      slowStartTime = Settings.atLeast("slowStart.time", time, Duration.ofMillis(10));
      return this;
    }

    /**
     * Decides and tells without acting (HE-13): members are probed, events, decisions and {@link
     * HealthGroup#members} say what would be, and no choice, no open request and no member changes
     * by it.
     */
    public Builder dryRun() {
      dryRun = true;
      return this;
    }

    /**
     * @throws IllegalArgumentException where replacement has no probe, the confirmation is missing,
     *     named twice, or has nothing to confirm
     */
    public HealthPolicy build() {
      boolean checks = silence != null || failures > 0;
      if (checks && probeLimit == null && cooldown == null) {
        throw Settings.refused(
            "confirmation", "none", "confirmedByProbe, restoredByProbe or cooldown");
      }
      if (probeLimit != null && cooldown != null) {
        throw Settings.refused("cooldown", cooldown, "not together with " + probeSetting());
      }
      if (!checks && (probeLimit != null || cooldown != null)) {
        Duration set = Objects.requireNonNullElse(probeLimit, cooldown);
        throw Settings.refused(
            probeLimit != null ? probeSetting() : "cooldown", set, "not with loadOnly");
      }
      if (replaceTimes > 0 && probeLimit == null) {
        throw Settings.refused(
            "replaceRepeatOffenders", replaceTimes, "confirmedByProbe or restoredByProbe");
      }
      return new HealthPolicy(this);
    }

    private String probeSetting() {
      return suspicionPutsOut ? "restoredByProbe" : "confirmedByProbe";
    }
  }
}
