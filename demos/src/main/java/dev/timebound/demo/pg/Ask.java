package dev.timebound.demo.pg;

/**
 * One read to make.
 *
 * @param id of the row
 * @param sleepMillis how long the server is busy with it beyond what the row takes
 */
public record Ask(int id, int sleepMillis) {}
