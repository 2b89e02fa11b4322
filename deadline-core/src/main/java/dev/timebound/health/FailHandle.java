package dev.timebound.health;

/** How the engine ends an open request of a member that it quarantines. */
@FunctionalInterface
public interface FailHandle {
  /**
   * Ends the request now; called at most once, on the group's worker, after the claim has ended.
   * Must not block.
   */
  void fail(QuarantinedException cause);
}
