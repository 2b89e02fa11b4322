package dev.timebound.health;

import java.time.Instant;

/**
 * A change of one member's status, or what became of a change that was called for (HE-9).
 *
 * @param reason why, as one of a few
 * @param figure why, with the figures that led to it, for people
 * @param dryRun it was decided, and not carried out
 * @param when wall clock of the engine's Scheduler
 */
public record HealthEvent(
    String group,
    String member,
    MemberStatus from,
    MemberStatus to,
    HealthReason reason,
    String figure,
    boolean dryRun,
    Instant when) {}
