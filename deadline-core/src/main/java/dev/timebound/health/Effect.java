package dev.timebound.health;

/** What the state machine wants done, in order. */
sealed interface Effect {
  int id();

  /** To be told: an event, a meter, a log line. {@code from} may equal {@code to}. */
  record Changed(
      int id, String name, MemberStatus from, MemberStatus to, HealthReason reason, String figure)
      implements Effect {}

  /** End every open claim that has a way to be ended. */
  record FailClaims(int id, String reason) implements Effect {}

  record StartProbe(int id, int number) implements Effect {}

  record CancelProbe(int id) implements Effect {}

  /** A trial ended without a word: the next caller may have it. */
  record FreeTrial(int id) implements Effect {}

  record Penalised(int id) implements Effect {}

  record Probed(int id, ProbeOutcome outcome) implements Effect {}
}
