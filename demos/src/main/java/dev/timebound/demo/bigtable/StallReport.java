package dev.timebound.demo.bigtable;

/**
 * How one client came through a stall.
 *
 * @param figures what the load came to
 * @param stalledBusy whether a connection that carried traffic was stalled, for as long as it
 *     should be
 * @param quarantined how many channels the client took out of service
 * @param restored how many it put back
 */
public record StallReport(
    LoadFigures figures, boolean stalledBusy, int quarantined, int restored) {}
