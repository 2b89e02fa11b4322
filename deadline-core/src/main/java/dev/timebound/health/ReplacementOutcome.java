package dev.timebound.health;

/** What came of preparing a member to take another one's place. */
enum ReplacementOutcome {
  /** It answered a probe. */
  READY,
  /** There is none to be had. */
  NONE,
  /** It could not be made, or did not answer in time. */
  FAILED
}
