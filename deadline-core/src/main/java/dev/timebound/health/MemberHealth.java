package dev.timebound.health;

import java.time.Duration;

/**
 * A member's state at one moment.
 *
 * @param open claims not ended
 * @param status in a dry run, what it would be
 * @param penalty extra load in the choice, of penalty and slow start; 0 when none
 * @param silence how long a caller has waited on it with nothing received; zero where nobody waits
 * @param quarantines how often it was quarantined since it joined
 */
public record MemberHealth(
    String name, MemberStatus status, int open, int penalty, Duration silence, int quarantines) {}
