package dev.timebound.health;

import static dev.timebound.health.Clock.NEVER;

/**
 * What the machine knows of one member. Times are the {@link Clock}'s.
 *
 * @param failures CONNECTION failures in a row
 * @param quarantines how often it went out; also the number of the trial that may follow
 * @param cooldownUntil meant only while QUARANTINED under a cooldown policy
 * @param penaltyUntil NEVER where there is no penalty
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
    int quarantines,
    long cooldownUntil,
    long penaltyUntil,
    long silence,
    long lastProgress,
    Probe probe) {

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

    Probe reset() {
      return new Probe(0, last, 0, startedAt, NEVER);
    }
  }

  static MemberState joined(int id, String name) {
    return new MemberState(
        id, name, MemberStatus.HEALTHY, false, 0, 0, NEVER, NEVER, 0, NEVER, Probe.FRESH);
  }

  MemberState withStatus(MemberStatus v) {
    return new MemberState(
        id,
        name,
        v,
        left,
        failures,
        quarantines,
        cooldownUntil,
        penaltyUntil,
        silence,
        lastProgress,
        probe);
  }

  MemberState leaving() {
    return new MemberState(
        id,
        name,
        status,
        true,
        failures,
        quarantines,
        cooldownUntil,
        penaltyUntil,
        silence,
        lastProgress,
        probe);
  }

  MemberState withFailures(int v) {
    return new MemberState(
        id,
        name,
        status,
        left,
        v,
        quarantines,
        cooldownUntil,
        penaltyUntil,
        silence,
        lastProgress,
        probe);
  }

  MemberState quarantined(long until) {
    return new MemberState(
        id,
        name,
        MemberStatus.QUARANTINED,
        left,
        failures,
        quarantines + 1,
        until,
        penaltyUntil,
        silence,
        lastProgress,
        probe);
  }

  MemberState withCooldownUntil(long v) {
    return new MemberState(
        id,
        name,
        status,
        left,
        failures,
        quarantines,
        v,
        penaltyUntil,
        silence,
        lastProgress,
        probe);
  }

  MemberState withPenaltyUntil(long v) {
    return new MemberState(
        id,
        name,
        status,
        left,
        failures,
        quarantines,
        cooldownUntil,
        v,
        silence,
        lastProgress,
        probe);
  }

  MemberState sampled(long silence, long lastProgress) {
    return new MemberState(
        id,
        name,
        status,
        left,
        failures,
        quarantines,
        cooldownUntil,
        penaltyUntil,
        silence,
        lastProgress,
        probe);
  }

  MemberState withProbe(Probe v) {
    return new MemberState(
        id,
        name,
        status,
        left,
        failures,
        quarantines,
        cooldownUntil,
        penaltyUntil,
        silence,
        lastProgress,
        v);
  }
}
