package dev.timebound.demo.pg;

import java.util.Map;

/**
 * How one client came through the standby's faults.
 *
 * @param figures what the load came to
 * @param writerReasons why reads went to the writer, and how often, since measuring began
 * @param backMillis from the thaw until reads were back on the reader; -1 where they never were
 * @param backAfterRestartMillis the same from the restart
 * @param leftovers the worst of what stood on the servers 1 s after the thaw and 1 s after the end
 * @param writerWaitMillis the longest wait for a connection of the writer's pool
 */
record Report(
    Figures figures,
    Map<String, Long> writerReasons,
    long backMillis,
    long backAfterRestartMillis,
    Standby.Leftovers leftovers,
    long writerWaitMillis) {}
