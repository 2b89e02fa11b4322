package dev.timebound.health;

import static dev.timebound.health.Clock.NEVER;

import java.util.ArrayList;
import java.util.List;

/**
 * What the machine knows of one member. Times are the {@link Clock}'s.
 *
 * @param failures CONNECTION failures in a row
 * @param cooldownUntil meant only while QUARANTINED under a cooldown policy
 * @param silence how long a caller had waited with nothing received at the last tick; 0 where
 *     nobody waits
 * @param lastProgress by the sampler's clock; NEVER where nothing was ever seen
 */
record MemberState(
    int id,
    String name,
    MemberStatus status,
    boolean left,
    int failures,
    Outs outs,
    long cooldownUntil,
    Extra extra,
    long silence,
    long lastProgress,
    Probe probe) {

  /**
   * When it went out of service.
   *
   * @param count how often, failed trials included; also the number of the trial that may follow
   * @param lately when it left service, ascending, within the policy's time at the last of them; at
   *     most {@link #KEPT}. A trial that failed is not among them: it was out already
   * @param irreplaceable it was asked for a replacement since the last of them and has none
   */
  record Outs(int count, List<Long> lately, boolean irreplaceable) {
    static final Outs NONE = new Outs(0, List.of(), false);
    private static final int KEPT = 64;

    Outs {
      lately = List.copyOf(lately);
    }

    Outs again(long now, long within) {
      List<Long> times = new ArrayList<>(lately);
      times.removeIf(at -> now - at >= within);
      if (times.size() == KEPT) {
        times.remove(0);
      }
      times.add(now);
      return new Outs(count + 1, times, false);
    }

    Outs trialFailed() {
      return new Outs(count + 1, lately, irreplaceable);
    }

    Outs kept() {
      return new Outs(count, lately, true);
    }

    int within(long now, long time) {
      int n = 0;
      for (long at : lately) {
        n += now - at < time ? 1 : 0;
      }
      return n;
    }
  }

  /**
   * What it carries in the choice beside its claims.
   *
   * @param penaltyUntil NEVER where there is no penalty
   * @param returnedAt since when it takes load in steps; NEVER where it takes all
   * @param step how many of the steps it has behind it
   */
  record Extra(long penaltyUntil, long returnedAt, int step) {
    static final Extra NONE = new Extra(NEVER, NEVER, 0);

    Extra withPenaltyUntil(long v) {
      return new Extra(v, returnedAt, step);
    }

    Extra returned(long at, int step) {
      return new Extra(penaltyUntil, at, step);
    }
  }

  /**
   * @param running number of the probe under way; 0 for none
   * @param last number of the last one started
   * @param attempt how many in a row, for the backing off
   * @param startedAt when the last one started
   * @param nextAt no probe before then
   */
  record Probe(int running, int last, int attempt, long startedAt, long nextAt) {
    static final Probe FRESH = new Probe(0, 0, 0, NEVER, NEVER);

    Probe started(long now) {
      return new Probe(last + 1, last + 1, attempt, now, nextAt);
    }

    Probe ended(int attempt, long nextAt) {
      return new Probe(0, last, attempt, startedAt, nextAt);
    }

    /** One under way stays so. */
    Probe backedOff(int attempt, long nextAt) {
      return new Probe(running, last, attempt, startedAt, nextAt);
    }

    Probe reset() {
      return new Probe(0, last, 0, startedAt, NEVER);
    }
  }

  static MemberState joined(int id, String name) {
    return new MemberState(
        id,
        name,
        MemberStatus.HEALTHY,
        false,
        0,
        Outs.NONE,
        NEVER,
        Extra.NONE,
        0,
        NEVER,
        Probe.FRESH);
  }

  int quarantines() {
    return outs.count;
  }

  MemberState withStatus(MemberStatus v) {
    return new MemberState(
        id, name, v, left, failures, outs, cooldownUntil, extra, silence, lastProgress, probe);
  }

  MemberState leaving() {
    return new MemberState(
        id,
        name,
        status,
        true,
        failures,
        outs,
        cooldownUntil,
        Extra.NONE,
        silence,
        lastProgress,
        probe);
  }

  MemberState withFailures(int v) {
    return new MemberState(
        id, name, status, left, v, outs, cooldownUntil, extra, silence, lastProgress, probe);
  }

  MemberState withOuts(Outs v) {
    return new MemberState(
        id, name, status, left, failures, v, cooldownUntil, extra, silence, lastProgress, probe);
  }

  MemberState quarantined(Outs outs, long until) {
    return new MemberState(
        id,
        name,
        MemberStatus.QUARANTINED,
        left,
        failures,
        outs,
        until,
        extra,
        silence,
        lastProgress,
        probe);
  }

  MemberState withCooldownUntil(long v) {
    return new MemberState(
        id, name, status, left, failures, outs, v, extra, silence, lastProgress, probe);
  }

  MemberState withExtra(Extra v) {
    return new MemberState(
        id, name, status, left, failures, outs, cooldownUntil, v, silence, lastProgress, probe);
  }

  MemberState sampled(long silence, long lastProgress) {
    return new MemberState(
        id, name, status, left, failures, outs, cooldownUntil, extra, silence, lastProgress, probe);
  }

  MemberState withProbe(Probe v) {
    return new MemberState(
        id, name, status, left, failures, outs, cooldownUntil, extra, silence, lastProgress, v);
  }
}
