package dev.timebound.health;

/**
 * What a failed request says about the member that served it. Each adapter maps its statuses in one
 * table.
 */
public enum FailureKind {
  /** The member may be dead: counts toward suspicion, and penalises. */
  CONNECTION,
  /** The member lives and has too much to do: penalises only. */
  OVERLOAD,
  /** The member lives and said no: as good as a success. */
  ANSWER
}
