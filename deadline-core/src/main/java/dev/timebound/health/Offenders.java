package dev.timebound.health;

import static dev.timebound.health.Clock.NEVER;
import static dev.timebound.health.HealthReason.NOT_REPLACED;
import static dev.timebound.health.HealthReason.RATE_LIMITED;
import static dev.timebound.health.HealthReason.REPEAT_OFFENDER;
import static dev.timebound.health.HealthReason.REPLACED;

import org.jspecify.annotations.Nullable;

/*
 * HE-7: who is replaced, and when. A part of the machine and as pure as it is. One replacement at a
 * time. The rate is counted here and not by Resilience4j's RateLimiter, which reads
 * System.nanoTime() whatever the Scheduler says, and would make the machine's answer depend on more
 * than its arguments. The count is stricter than a limiter's cycles: between the end of one
 * replacement and the beginning of the next lies the whole time.
 */
final class Offenders {
  private final HealthPolicy policy;
  private final boolean dryRun;

  Offenders(HealthPolicy policy, boolean dryRun) {
    this.policy = policy;
    this.dryRun = dryRun;
  }

  /** It has just gone out: where it ought to be replaced and cannot yet, that is told, once. */
  void wentOut(Turn t, MemberState m) {
    if (offends(t, m) && !isFree(t)) {
      String why =
          t.replacement.running() != 0
              ? "another replacement is under way"
              : "the last replacement was " + Figures.seconds(t.now - spentAt(t)) + " ago";
      t.tell(m, RATE_LIMITED, figure(t, m) + "; not replaced yet: " + why, policy);
    }
  }

  /** At the end of each step: begins a replacement where one is due. */
  void look(Turn t) {
    MemberState worst = policy.replaceTimes > 0 && isFree(t) ? worst(t) : null;
    if (worst == null) {
      return;
    }
    t.tell(worst, REPEAT_OFFENDER, figure(t, worst), policy);
    t.replacement = t.replacement.begun(worst.id(), t.now);
    if (dryRun) {
      t.replacement = t.replacement.ended(t.now);
      t.put(worst.withOuts(worst.outs().kept()));
    } else {
      t.effect(new Effect.Prepare(worst.id(), t.replacement.running()));
    }
  }

  void prepared(Turn t, Signal.Prepared e) {
    Replacement r = t.replacement;
    MemberState m = t.get(e.id());
    if (r.running() != e.number() || m == null || m.left()) {
      t.effect(new Effect.Discard(e.id(), e.number()));
      return;
    }
    switch (e.outcome()) {
      case READY -> {
        t.replacement = r.ended(t.now);
        String figure = figure(t, m) + "; " + e.figure() + " answered a probe and takes its place";
        t.effect(new Effect.Replace(m.id(), e.number(), t.told(m, REPLACED, figure, policy)));
      }
      case FAILED -> notReplaced(t, m, e, r.ended(r.spentAt()));
      case NONE -> {
        // nothing was made: others may be replaced at once
        notReplaced(t, m, e, r.undone());
        t.put(m.withOuts(m.outs().kept()));
      }
    }
  }

  private void notReplaced(Turn t, MemberState m, Signal.Prepared e, Replacement after) {
    t.replacement = after;
    t.effect(new Effect.Discard(e.id(), e.number()));
    t.tell(m, NOT_REPLACED, figure(t, m) + "; it stays: " + e.figure(), policy);
  }

  /** BT-19: it counts as the replacement in progress no more, nor against the rate. */
  static void left(Turn t, int id) {
    if (t.replacement.isOf(id)) {
      t.effect(new Effect.Discard(id, t.replacement.running()));
      t.replacement = t.replacement.undone();
    }
  }

  /** When {@link #look} is next of use. */
  long nextWake(GroupState state, long now) {
    Replacement r = state.replacement();
    if (policy.replaceTimes == 0 || r.running() != 0 || r.spentAt() == NEVER) {
      return Long.MAX_VALUE;
    }
    // where it were not too early the step would have begun it
    return worst(new Turn(state, now)) == null
        ? Long.MAX_VALUE
        : Math.max(now + 1, r.spentAt() + policy.replaceEveryNanos);
  }

  private @Nullable MemberState worst(Turn t) {
    MemberState worst = null;
    for (MemberState m : t.all()) {
      if ((worst == null || outs(t, m) > outs(t, worst)) && offends(t, m)) {
        worst = m;
      }
    }
    return worst;
  }

  private boolean offends(Turn t, MemberState m) {
    if (policy.replaceTimes == 0 || m.left() || m.outs().irreplaceable()) {
      return false;
    }
    int outs = outs(t, m);
    return outs >= policy.replaceTimes
        && outs > policy.replaceFactor * Figures.median(t, m, o -> outs(t, o));
  }

  private boolean isFree(Turn t) {
    return t.replacement.running() == 0 && t.now - spentAt(t) >= policy.replaceEveryNanos;
  }

  private static long spentAt(Turn t) {
    return t.replacement.spentAt();
  }

  private int outs(Turn t, MemberState m) {
    return m.outs().within(t.now, policy.repeatNanos);
  }

  private String figure(Turn t, MemberState m) {
    return "quarantined "
        + outs(t, m)
        + " times in "
        + Figures.seconds(policy.repeatNanos)
        + ", its group's median is "
        + Figures.number(Figures.median(t, m, o -> outs(t, o)));
  }
}
