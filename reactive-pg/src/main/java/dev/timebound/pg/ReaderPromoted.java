package dev.timebound.pg;

import java.time.Instant;

/**
 * A reader turned out to be no standby any more: it still serves reads, and somebody should know.
 * (PG-14a)
 *
 * @param when wall clock of the database's Scheduler, at the proof that saw it
 */
public record ReaderPromoted(String reader, Instant when) {}
