package dev.timebound.health;

import java.time.Instant;

/**
 * A change of one member's status (HE-9).
 *
 * @param reason why, as one of a few
 * @param figure why, with the figures that led to it, for people
 * @param when wall clock of the engine's Scheduler
 */
public record HealthEvent(
    String group,
    String member,
    MemberStatus from,
    MemberStatus to,
    HealthReason reason,
    String figure,
    Instant when) {}
