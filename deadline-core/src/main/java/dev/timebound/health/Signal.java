package dev.timebound.health;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** What the state machine is told. Members are named by the id of their slot. */
sealed interface Signal {
  record Joined(int id, String name) implements Signal {}

  /** Taken out of the group; its open claims run on. */
  record Left(int id) implements Signal {}

  /** It left and its last claim has ended. */
  record Drained(int id) implements Signal {}

  /**
   * A claim ended by an outcome.
   *
   * @param failure null for a success, and an ANSWER
   * @param cause for the figure
   * @param first it was its request's first choice
   * @param trial round of the trial it was; 0 for none
   */
  record Ended(
      int id, @Nullable FailureKind failure, @Nullable Throwable cause, boolean first, int trial)
      implements Signal {}

  record TrialCancelled(int id, int trial) implements Signal {}

  /**
   * What the sampler saw; members with nothing to tell may be left out.
   *
   * @param measured the sampler's own clock, which leaves out what it overslept
   */
  record Tick(long measured, List<Sample> samples) implements Signal {}

  /**
   * @param progressed something was received since the last tick
   * @param waitingSince since when the longest wait is known, by the sampler's clock; {@link
   *     Clock#NEVER} where none waits
   */
  record Sample(int id, boolean progressed, long waitingSince) {}

  record ProbeEnded(int id, int number, ProbeOutcome outcome) implements Signal {}

  /**
   * A replacement was prepared, or could not be.
   *
   * @param number of the replacement
   * @param figure the new one's name where it is ready, else why it is not; for people
   */
  record Prepared(int id, int number, ReplacementOutcome outcome, String figure)
      implements Signal {}

  /** Something that was due at a time may be due now. */
  record Wake() implements Signal {}
}
