package dev.timebound.fetch.s3;

/** Where a partition begins, and the base of its newest object; −1 where it has none. */
record Bounds(long start, long newest) {}
