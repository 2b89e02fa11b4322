package dev.timebound.pg;

import java.time.Duration;
import reactor.core.scheduler.Scheduler;

/**
 * Settings of reader pools and reads, validated by the builder that makes them.
 *
 * @param maxSize connections a reader's pool may hold
 * @param minIdle connections it keeps (PG-1)
 * @param maxPending reads that may wait for a connection (PG-5)
 * @param acquireTimeout bound of a read's wait for a connection, nothing else's (PG-4)
 * @param dialTimeout after it a dial's socket is closed (PG-4)
 * @param proofTimeout (PG-10)
 * @param releaseTimeout bound of the release check (PG-15)
 * @param closeTimeout bound of a close (PG-15)
 * @param cancelGrace how long a statement whose caller left may take to end by itself (PG-19)
 * @param cancelTimeout bound of a cancel request (PG-19)
 * @param maxLifetime age at which a connection is replaced, shortened by up to a tenth at random
 * @param idleTimeout idle time after which one above the floor is closed
 * @param defaultReadTimeout of a read without a deadline (PG-13)
 * @param scheduler clock and timers
 */
record PgSettings(
    int maxSize,
    int minIdle,
    int maxPending,
    Duration acquireTimeout,
    Duration dialTimeout,
    Duration proofTimeout,
    Duration releaseTimeout,
    Duration closeTimeout,
    Duration cancelGrace,
    Duration cancelTimeout,
    Duration maxLifetime,
    Duration idleTimeout,
    Duration defaultReadTimeout,
    Scheduler scheduler) {}
