package dev.timebound.health;

/** Why a member's status changed. Few, so that it serves as a meter's tag. */
public enum HealthReason {
  /** A caller waited with nothing received while others received. */
  SILENCE,
  /** CONNECTION failures in a row. */
  FAILURES,
  PROBE_ANSWERED,
  /** The connection failed under the probe. */
  PROBE_FAILED,
  PROBE_TIMED_OUT,
  /**
   * It would have been quarantined, but too many of the group are suspect or out: it stays where it
   * was ({@code from} equals {@code to}).
   */
  CAP_REACHED,
  /** A caller's response came in. */
  PROGRESS,
  /** A request got its answer. */
  SUCCESS,
  COOLDOWN_OVER,
  TRIAL_SUCCEEDED,
  TRIAL_FAILED,
  /**
   * It went out often, and more often than its group: a replacement is being prepared ({@code from}
   * equals {@code to}, here and in the next three).
   */
  REPEAT_OFFENDER,
  /** It would have been replaced, but the last replacement is too recent or still under way. */
  RATE_LIMITED,
  /** Another member, which has answered a probe, has taken its place. */
  REPLACED,
  /** No replacement could be made, or it never answered: the member stays. */
  NOT_REPLACED
}
