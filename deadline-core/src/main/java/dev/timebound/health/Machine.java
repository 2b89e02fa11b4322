package dev.timebound.health;

import static dev.timebound.health.Clock.NEVER;
import static dev.timebound.health.HealthReason.CAP_REACHED;
import static dev.timebound.health.HealthReason.COOLDOWN_OVER;
import static dev.timebound.health.HealthReason.FAILURES;
import static dev.timebound.health.HealthReason.PROBE_ANSWERED;
import static dev.timebound.health.HealthReason.PROBE_FAILED;
import static dev.timebound.health.HealthReason.PROBE_TIMED_OUT;
import static dev.timebound.health.HealthReason.PROGRESS;
import static dev.timebound.health.HealthReason.SILENCE;
import static dev.timebound.health.HealthReason.SUCCESS;
import static dev.timebound.health.HealthReason.TRIAL_FAILED;
import static dev.timebound.health.HealthReason.TRIAL_SUCCEEDED;
import static dev.timebound.health.MemberStatus.HALF_OPEN;
import static dev.timebound.health.MemberStatus.HEALTHY;
import static dev.timebound.health.MemberStatus.QUARANTINED;
import static dev.timebound.health.MemberStatus.SUSPECT;

/**
 * What a group's reports mean, as a function: (state, signal, now) to a new state and effects. No
 * timer, no clock, no thread, no randomness inside; the same arguments give the same answer.
 *
 * <pre>
 *   HEALTHY --suspicion--> SUSPECT --probe fails, cap allows--> QUARANTINED   (confirmed by probe)
 *      ^---progress, answer---+                                     |
 *      +----------------------------probe answered------------------+
 *
 *   HEALTHY --suspicion, cap allows--> QUARANTINED --probe answered--> HEALTHY (restored by probe)
 *
 *   HEALTHY --suspicion, cap allows--> QUARANTINED --time--> HALF_OPEN        (cooldown)
 *      ^                                   ^---trial fails-------+
 *      +----------any success--------------+---trial succeeds----+
 * </pre>
 *
 * A member that left keeps a status of its own by the same rules, but no event tells of it, it
 * takes no part in any figure of the group, and in place of a quarantine its open claims are
 * failed.
 */
final class Machine {
  record Step(GroupState state, java.util.List<Effect> effects) {}

  private final HealthPolicy policy;
  private final Backoff backoff;
  private final Offenders offenders;

  /**
   * @param dryRun what is decided is not carried out
   */
  Machine(HealthPolicy policy, Backoff backoff, boolean dryRun) {
    this.policy = policy;
    this.backoff = backoff;
    this.offenders = new Offenders(policy, dryRun);
  }

  Step on(GroupState state, Signal signal, long now) {
    Turn t = new Turn(state, now);
    if (signal instanceof Signal.Ended e) {
      ended(t, e);
    } else if (signal instanceof Signal.Tick e) {
      tick(t, e);
    } else if (signal instanceof Signal.ProbeEnded e) {
      probeEnded(t, e);
    } else if (signal instanceof Signal.Wake) {
      t.all().forEach(m -> due(t, m));
    } else if (signal instanceof Signal.TrialCancelled e) {
      MemberState m = t.get(e.id());
      if (m != null && m.status() == HALF_OPEN && m.quarantines() == e.trial()) {
        t.effect(new Effect.FreeTrial(m.id()));
      }
    } else if (signal instanceof Signal.Joined e) {
      t.put(MemberState.joined(e.id(), e.name()));
    } else if (signal instanceof Signal.Left e) {
      Offenders.left(t, e.id());
      left(t, e.id());
    } else if (signal instanceof Signal.Prepared e) {
      offenders.prepared(t, e);
    } else if (signal instanceof Signal.Drained e) {
      MemberState m = t.get(e.id());
      if (m != null) {
        t.put(cancelProbe(t, m));
        t.remove(e.id());
      }
    }
    offenders.look(t);
    return t.done();
  }

  /** When {@link Signal.Wake} is next of use; Long.MAX_VALUE for never. */
  long nextWake(GroupState state, long now) {
    long next = offenders.nextWake(state, now);
    for (MemberState m : state.members()) {
      if (m.extra().penaltyUntil() != NEVER) {
        next = Math.min(next, m.extra().penaltyUntil());
      }
      next = Math.min(next, SlowStart.nextStep(policy, m));
      if (m.status() == QUARANTINED && policy.cooldownNanos > 0) {
        next = Math.min(next, m.cooldownUntil());
      }
      // a suspect whose time has come and whose group is silent is the next tick's
      if (probable(m) && m.probe().nextAt() > now) {
        next = Math.min(next, m.probe().nextAt());
      }
    }
    return next;
  }

  // --- outcomes

  private void ended(Turn t, Signal.Ended e) {
    MemberState m = t.get(e.id());
    if (m == null || m.left()) {
      return;
    }
    FailureKind failure = e.failure();
    if ((failure == FailureKind.CONNECTION || failure == FailureKind.OVERLOAD)
        && policy.penaltyWeight > 0) {
      m = m.withExtra(m.extra().withPenaltyUntil(t.now + policy.penaltyNanos));
      t.effect(new Effect.Penalised(m.id()));
    }
    t.put(failure == FailureKind.CONNECTION ? connectionFailed(t, m, e) : lives(t, m, e));
  }

  private MemberState connectionFailed(Turn t, MemberState m, Signal.Ended e) {
    if (!policy.checks()) {
      return m;
    }
    boolean trial = e.trial() != 0 && e.trial() == m.quarantines();
    switch (m.status()) {
      case HALF_OPEN:
        if (trial) {
          return quarantine(t, m, TRIAL_FAILED, "its trial failed: " + e.cause());
        }
        return e.first() ? quarantine(t, m, FAILURES, "a request failed: " + e.cause()) : m;
      case QUARANTINED:
        return e.first() ? m.withCooldownUntil(t.now + policy.cooldownNanos) : m;
      case HEALTHY:
      case SUSPECT:
        break;
    }
    if (policy.failures == 0) {
      return m;
    }
    m = m.withFailures(m.failures() + 1);
    return m.failures() < policy.failures
        ? m
        : suspect(
            t, m, FAILURES, m.failures() + " connection failures in a row, last: " + e.cause());
  }

  private MemberState lives(Turn t, MemberState m, Signal.Ended e) {
    m = m.withFailures(0);
    switch (m.status()) {
      case SUSPECT:
        // where silence made it suspect only what the connection receives clears it: a success may
        // be told long after its last byte came
        return policy.silenceNanos > 0
            ? m
            : change(t, cancelProbe(t, m), HEALTHY, SUCCESS, "a request was answered");
      case QUARANTINED:
        // a probe policy waits for the probe's word
        return policy.probes() ? m : change(t, m, HEALTHY, SUCCESS, "a request was answered");
      case HALF_OPEN:
        return change(
            t,
            m,
            HEALTHY,
            e.trial() == 0 ? SUCCESS : TRIAL_SUCCEEDED,
            e.trial() == 0 ? "a request was answered" : "its trial was answered");
      case HEALTHY:
        break;
    }
    return m;
  }

  // --- silence

  private void tick(Turn t, Signal.Tick tick) {
    t.measured = tick.measured();
    for (Signal.Sample s : tick.samples()) {
      MemberState m = t.get(s.id());
      if (m == null) {
        continue;
      }
      long last = s.progressed() ? t.measured : m.lastProgress();
      long since = s.waitingSince();
      m = m.sampled(since == NEVER ? 0 : t.measured - Math.max(since, last), last);
      if (s.progressed()) {
        if (m.status() == SUSPECT) {
          m = change(t, cancelProbe(t, m), HEALTHY, PROGRESS, "a response came in");
        }
        if (m.status() == HEALTHY) {
          m = m.withProbe(m.probe().reset());
        }
      }
      t.put(m);
    }
    for (MemberState m : t.all()) {
      if (m.silence() >= policy.silenceNanos && othersProgress(t, m)) {
        t.put(silent(t, m));
      }
      due(t, t.mustGet(m.id()));
    }
  }

  private MemberState silent(Turn t, MemberState m) {
    String figure = "a caller waited " + Figures.seconds(m.silence()) + " with nothing received";
    return switch (m.status()) {
      case HALF_OPEN -> quarantine(t, m, TRIAL_FAILED, figure);
      // where suspicion puts out: held back by the cap until now
      case SUSPECT ->
          policy.probes() && !policy.suspicionPutsOut ? m : suspect(t, m, SILENCE, figure);
      // one that has just answered a probe is not suspect again before the next probe's time
      case HEALTHY -> t.now >= m.probe().nextAt() ? suspect(t, m, SILENCE, figure) : m;
      case QUARANTINED -> m;
    };
  }

  /** BT-12: a stall of all points at the server or the network, and no member is to blame. */
  private boolean othersProgress(Turn t, MemberState m) {
    for (MemberState other : t.all()) {
      if (other.id() != m.id()
          && !other.left()
          && t.measured - other.lastProgress() < policy.silenceNanos) {
        return true;
      }
    }
    return false;
  }

  // --- suspicion and its confirmation

  private MemberState suspect(Turn t, MemberState m, HealthReason reason, String figure) {
    if (policy.probes() && !policy.suspicionPutsOut) {
      return m.status() == SUSPECT ? m : probe(t, change(t, m, SUSPECT, reason, figure));
    }
    if (m.left()) {
      return m;
    }
    if (capAllows(t, m)) {
      return probe(t, quarantine(t, m, reason, figure));
    }
    return m.status() == SUSPECT ? m : change(t, m, SUSPECT, CAP_REACHED, figure + capped(t, m));
  }

  private void probeEnded(Turn t, Signal.ProbeEnded e) {
    MemberState m = t.get(e.id());
    if (m == null || m.probe().running() != e.number()) {
      return;
    }
    t.effect(new Effect.Probed(m.id(), e.outcome()));
    MemberState.Probe p = m.probe();
    boolean counts = e.outcome() != ProbeOutcome.NOT_SENT;
    int attempt = counts ? p.attempt() + 1 : p.attempt();
    // one that could not be sent may have waited for that long already
    long from = counts ? p.startedAt() : t.now;
    m = m.withProbe(p.ended(attempt, from + backoff.nanos(attempt, m.id(), p.last())));
    m =
        switch (e.outcome()) {
          case ANSWERED -> answered(t, m);
          case FAILED -> unanswered(t, m, PROBE_FAILED, "its connection failed under a probe");
          case TIMED_OUT ->
              unanswered(
                  t, m, PROBE_TIMED_OUT, "a probe had no answer within " + policy.probeLimit);
          case NOT_SENT -> m;
        };
    t.put(m);
    due(t, m);
  }

  private MemberState answered(Turn t, MemberState m) {
    if (m.status() == QUARANTINED) {
      m = m.withProbe(m.probe().reset());
    }
    return change(t, m.withFailures(0), HEALTHY, PROBE_ANSWERED, "it answered a probe");
  }

  private MemberState unanswered(Turn t, MemberState m, HealthReason reason, String figure) {
    if (m.left()) {
      t.effect(new Effect.FailClaims(m.id(), figure));
      return m.withStatus(HEALTHY);
    }
    if (m.status() != SUSPECT) {
      return m;
    }
    if (capAllows(t, m)) {
      return quarantine(t, m, reason, figure);
    }
    return change(t, m, SUSPECT, CAP_REACHED, figure + capped(t, m));
  }

  private MemberState quarantine(Turn t, MemberState m, HealthReason reason, String figure) {
    MemberStatus from = m.status();
    MemberState.Outs outs =
        from == HALF_OPEN ? m.outs().trialFailed() : m.outs().again(t.now, policy.repeatNanos);
    m = m.quarantined(outs, t.now + policy.cooldownNanos);
    m = m.withExtra(m.extra().returned(NEVER, 0));
    MemberState.Probe p = m.probe();
    int attempt = Math.max(1, outs.lately().size());
    if (p.attempt() != 0 && p.attempt() != attempt || attempt > 1) {
      // how far it backed off as a suspect does not count, how often it went out does (HE-12)
      m =
          m.withProbe(
              p.backedOff(attempt, p.startedAt() + backoff.nanos(attempt, m.id(), p.last())));
    }
    t.changed(m, from, reason, figure, policy);
    t.effect(new Effect.FailClaims(m.id(), figure));
    if (from != HALF_OPEN) {
      offenders.wentOut(t, m);
    }
    return m;
  }

  /** HE-6: with this one, no more than the share may be suspect or out. */
  private boolean capAllows(Turn t, MemberState m) {
    return t.troubledBeside(m) + 1 <= policy.cap(t.size());
  }

  private String capped(Turn t, MemberState m) {
    return "; kept in service: "
        + (t.troubledBeside(m) + 1)
        + " of "
        + t.size()
        + " suspect or out, at most "
        + policy.cap(t.size());
  }

  // --- times that have come

  private void due(Turn t, MemberState m) {
    if (m.extra().penaltyUntil() != NEVER && t.now >= m.extra().penaltyUntil()) {
      m = m.withExtra(m.extra().withPenaltyUntil(NEVER));
    }
    m = SlowStart.stepped(policy, m, t.now);
    if (m.status() == QUARANTINED && policy.cooldownNanos > 0 && t.now >= m.cooldownUntil()) {
      m =
          change(
              t, m, HALF_OPEN, COOLDOWN_OVER, "out for " + Figures.seconds(policy.cooldownNanos));
    }
    t.put(probe(t, m));
  }

  private boolean probable(MemberState m) {
    return policy.probes()
        && m.probe().running() == 0
        && (m.status() == SUSPECT || m.status() == QUARANTINED);
  }

  /** Starts a probe where one is due. */
  private MemberState probe(Turn t, MemberState m) {
    if (!probable(m) || t.now < m.probe().nextAt()) {
      return m;
    }
    if (m.status() == SUSPECT && policy.silenceNanos > 0 && !othersProgress(t, m)) {
      return m;
    }
    m = m.withProbe(m.probe().started(t.now));
    t.effect(new Effect.StartProbe(m.id(), m.probe().running()));
    return m;
  }

  private static MemberState cancelProbe(Turn t, MemberState m) {
    MemberState.Probe p = m.probe();
    if (p.running() == 0) {
      return m;
    }
    t.effect(new Effect.CancelProbe(m.id()));
    return m.withProbe(p.ended(p.attempt(), p.nextAt()));
  }

  private static void left(Turn t, int id) {
    MemberState m = t.get(id);
    if (m == null) {
      return;
    }
    m = m.leaving();
    // a probe under way still decides over its open claims; one that is out has none to decide over
    boolean watched = m.status() == SUSPECT || m.probe().running() != 0;
    t.put(m.withStatus(watched ? SUSPECT : HEALTHY));
  }

  private MemberState change(
      Turn t, MemberState m, MemberStatus to, HealthReason reason, String figure) {
    MemberStatus from = m.status();
    MemberState changed = m.withStatus(to);
    if (to == HEALTHY && (from == QUARANTINED || from == HALF_OPEN)) {
      changed = SlowStart.begun(policy, changed, t.now);
    }
    t.changed(changed, from, reason, figure, policy);
    return changed;
  }
}
