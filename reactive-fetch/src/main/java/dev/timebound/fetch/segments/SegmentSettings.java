package dev.timebound.fetch.segments;

/**
 * Of a whole store, as its builder validated them.
 *
 * @param maxWaiting appends of one partition that may wait
 * @param cutAtFault whether a sealed segment that is damaged ends the partition there
 */
record SegmentSettings(
    int segmentBytes, int indexEvery, Fsync fsync, int maxWaiting, boolean cutAtFault) {}
