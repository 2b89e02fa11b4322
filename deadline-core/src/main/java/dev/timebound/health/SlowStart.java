package dev.timebound.health;

import static dev.timebound.health.Clock.NEVER;

/**
 * HE-12: the extra load of a member that has returned, which goes down to 0 in equal steps. A part
 * of the machine and as pure as it is.
 */
final class SlowStart {
  private static final int STEPS = 10;

  private SlowStart() {}

  static int steps(HealthPolicy policy) {
    return Math.min(policy.slowStartWeight, STEPS);
  }

  static MemberState begun(HealthPolicy policy, MemberState m, long now) {
    return policy.slowStartWeight == 0 || m.left() ? m : m.withExtra(m.extra().returned(now, 0));
  }

  static MemberState stepped(HealthPolicy policy, MemberState m, long now) {
    MemberState.Extra extra = m.extra();
    if (extra.returnedAt() == NEVER) {
      return m;
    }
    int steps = steps(policy);
    int step = extra.step();
    while (step < steps && now >= at(policy, extra.returnedAt(), step + 1)) {
      step++;
    }
    if (step == steps) {
      return m.withExtra(extra.returned(NEVER, 0));
    }
    return step == extra.step() ? m : m.withExtra(extra.returned(extra.returnedAt(), step));
  }

  /** When it sheds the next part; Long.MAX_VALUE where it carries nothing. */
  static long nextStep(HealthPolicy policy, MemberState m) {
    MemberState.Extra extra = m.extra();
    return extra.returnedAt() == NEVER
        ? Long.MAX_VALUE
        : at(policy, extra.returnedAt(), extra.step() + 1);
  }

  /** From the whole weight to 0, rounded up. */
  static int load(HealthPolicy policy, MemberState.Extra extra) {
    if (extra.returnedAt() == NEVER) {
      return 0;
    }
    long left = steps(policy) - extra.step();
    return (int) -Math.floorDiv(-policy.slowStartWeight * left, (long) steps(policy));
  }

  private static long at(HealthPolicy policy, long from, int step) {
    return from + policy.slowStartNanos / steps(policy) * step;
  }
}
