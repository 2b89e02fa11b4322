package dev.timebound.health;

import java.time.Duration;
import java.util.Arrays;
import java.util.function.ToDoubleFunction;

/** What a group's members have in common, as a number to hold one of them against, and as text. */
final class Figures {
  private Figures() {}

  /**
   * The middle one over the members in the group, {@code one} as it is given and not as the turn
   * has it; between two, the mean. Of a group of two, the other's: one of two could never stand out
   * from a middle that is half its own.
   */
  static double median(Turn t, MemberState one, ToDoubleFunction<MemberState> figure) {
    boolean two = t.size() == 2;
    double[] values =
        t.all().stream()
            .filter(m -> !m.left() && !(two && m.id() == one.id()))
            .mapToDouble(m -> figure.applyAsDouble(m.id() == one.id() ? one : m))
            .toArray();
    Arrays.sort(values);
    int n = values.length;
    return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
  }

  /** The group's figure beside the one that led to a change of {@code m}, for people. */
  static String group(Turn t, MemberState m, HealthReason reason, HealthPolicy policy) {
    String own =
        switch (reason) {
          case SILENCE, PROBE_FAILED, PROBE_TIMED_OUT, PROGRESS -> silence(t, m, policy);
          case FAILURES, TRIAL_FAILED, SUCCESS, TRIAL_SUCCEEDED, COOLDOWN_OVER ->
              "median of " + number(median(t, m, MemberState::failures)) + " failures in a row, ";
          case REPEAT_OFFENDER, RATE_LIMITED, REPLACED, NOT_REPLACED ->
              "median of " + outs(t, m, policy) + ", ";
          case CAP_REACHED, PROBE_ANSWERED -> "";
        };
    int troubled = t.troubledBeside(m) + (m.status() == MemberStatus.HEALTHY ? 0 : 1);
    int size = t.size();
    int cap = policy.cap(size);
    return own
        + (troubled + " of " + size + " suspect or out")
        + (cap < size ? ", at most " + cap : "");
  }

  private static String silence(Turn t, MemberState m, HealthPolicy policy) {
    long received =
        t.all().stream()
            .filter(o -> !o.left() && o.id() != m.id())
            .filter(o -> t.measured - o.lastProgress() < policy.silenceNanos)
            .count();
    return policy.silenceNanos == 0 ? "" : received + " others received something, ";
  }

  private static String outs(Turn t, MemberState m, HealthPolicy policy) {
    long within = policy.repeatNanos;
    return number(median(t, m, o -> o.outs().within(t.now, within)))
        + " quarantines in "
        + seconds(within);
  }

  /** 2, 1.5. */
  static String number(double v) {
    return v == Math.rint(v) ? Long.toString((long) v) : Double.toString(v);
  }

  static String seconds(long nanos) {
    return Duration.ofMillis(nanos / 1_000_000).toString();
  }
}
