package dev.timebound.samples.kafka.group;

/**
 * A gateway as clients know it.
 *
 * @param id {@code >= 0}
 */
public record Node(int id, String host, int port) {}
