package dev.timebound.health;

import java.time.Instant;

/**
 * What the engine decided about one member, carried out or not, with the figures it stood on
 * (HE-13).
 *
 * @param outcome whether it was carried out, and what held it back
 * @param figure the member's own, for people
 * @param groupFigure the group's beside it, for people
 * @param when wall clock of the engine's Scheduler
 */
public record Decision(
    String group,
    String member,
    Action action,
    Outcome outcome,
    HealthReason reason,
    String figure,
    String groupFigure,
    Instant when) {

  /** What was decided. */
  public enum Action {
    /** To doubt it: it is probed, or put out if that can be. */
    SUSPECT,
    /** To put it out of service. */
    QUARANTINE,
    /** To let one request through, as a trial. */
    TRY,
    /** To hold it healthy again. */
    RESTORE,
    /** To have a replacement made and probed. */
    PREPARE_REPLACEMENT,
    /** To put the replacement in its place. */
    REPLACE
  }

  /** What became of it. */
  public enum Outcome {
    DONE,
    /** Not done: too many of the group are suspect or out. */
    CAP_REACHED,
    /** Not done: the last replacement is too recent or still under way. It is tried later. */
    RATE_LIMITED,
    /** Not done: it could not be made, or did not answer. */
    FAILED,
    /** Not done: the group, or the engine, only tells what it would do. */
    DRY_RUN
  }

  static Decision of(String group, Effect.Changed c, boolean dryRun, Instant when) {
    Outcome outcome =
        switch (c.reason()) {
          case CAP_REACHED -> Outcome.CAP_REACHED;
          case RATE_LIMITED -> Outcome.RATE_LIMITED;
          case NOT_REPLACED -> Outcome.FAILED;
          default -> dryRun ? Outcome.DRY_RUN : Outcome.DONE;
        };
    return new Decision(
        group, c.name(), action(c), outcome, c.reason(), c.figure(), c.group(), when);
  }

  private static Action action(Effect.Changed c) {
    return switch (c.reason()) {
      case CAP_REACHED -> Action.QUARANTINE;
      case REPEAT_OFFENDER, RATE_LIMITED -> Action.PREPARE_REPLACEMENT;
      case REPLACED, NOT_REPLACED -> Action.REPLACE;
      default ->
          switch (c.to()) {
            case HEALTHY -> Action.RESTORE;
            case SUSPECT -> Action.SUSPECT;
            case QUARANTINED -> Action.QUARANTINE;
            case HALF_OPEN -> Action.TRY;
          };
    };
  }

  /** As in {@code QUARANTINE bigtable/bigtable-3 CAP_REACHED: <figure> (group: <figure>)}. */
  @Override
  public String toString() {
    return action
        + " "
        + group
        + "/"
        + member
        + (outcome == Outcome.DONE ? "" : " not done, " + outcome)
        + ": "
        + figure
        + " (group: "
        + groupFigure
        + ")";
  }
}
