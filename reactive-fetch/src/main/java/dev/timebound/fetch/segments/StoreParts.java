package dev.timebound.fetch.segments;

import reactor.core.scheduler.Scheduler;

/**
 * What the partitions of a store share.
 *
 * @param io where the disk is waited for
 * @param reads the same, for what may be cancelled: never by an interrupt, which closes the file
 *     that is waited for, and would be told as an error of the disk
 */
record StoreParts(
    SegmentSettings settings,
    Disk disk,
    Scheduler io,
    Scheduler reads,
    SegmentMaps maps,
    WriteChannels channels,
    Staging staging,
    Background background,
    SegmentMeters meters) {}
