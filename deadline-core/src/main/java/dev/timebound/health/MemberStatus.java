package dev.timebound.health;

/** Where a member stands. Only {@link #QUARANTINED} takes it out of the choice. */
public enum MemberStatus {
  HEALTHY,
  /** Silent or failing, not yet confirmed: still in the choice, being probed. */
  SUSPECT,
  /** Out of the choice, until a probe is answered or a trial succeeds. */
  QUARANTINED,
  /** Its cooldown is over: the next pick is a trial, given to one caller only. */
  HALF_OPEN
}
