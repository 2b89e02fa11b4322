package dev.timebound.health;

/** What the state machine wants done, in order. */
sealed interface Effect {
  int id();

  /**
   * To be told: an event, a decision, a meter, a log line. {@code from} may equal {@code to}.
   *
   * @param group the group's figure beside the member's own
   */
  record Changed(
      int id,
      String name,
      MemberStatus from,
      MemberStatus to,
      HealthReason reason,
      String figure,
      String group)
      implements Effect {}

  /** End every open claim that has a way to be ended. */
  record FailClaims(int id, String reason) implements Effect {}

  record StartProbe(int id, int number) implements Effect {}

  record CancelProbe(int id) implements Effect {}

  /** A trial ended without a word: the next caller may have it. */
  record FreeTrial(int id) implements Effect {}

  /** Make a member to take this one's place, and probe it. */
  record Prepare(int id, int number) implements Effect {}

  /** Put the prepared one in this one's place; where it can still be done, it is told. */
  record Replace(int id, int number, Changed told) implements Effect {}

  /** What is being prepared for it, or is ready, is not wanted. */
  record Discard(int id, int number) implements Effect {}

  record Penalised(int id) implements Effect {}

  record Probed(int id, ProbeOutcome outcome) implements Effect {}
}
