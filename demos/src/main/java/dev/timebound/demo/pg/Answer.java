package dev.timebound.demo.pg;

/**
 * What a read brought.
 *
 * @param byReader whether a standby served it; the server says so itself, in the row
 * @param pulse the number of the last write that its snapshot shows
 */
public record Answer(boolean byReader, long pulse) {}
