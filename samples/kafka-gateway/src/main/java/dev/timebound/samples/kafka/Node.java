package dev.timebound.samples.kafka;

/**
 * A gateway as clients know it.
 *
 * @param id {@code >= 0}
 */
record Node(int id, String host, int port) {}
