package dev.timebound.samples.kafka;

import dev.timebound.samples.kafka.group.Node;
import java.time.Duration;

/**
 * What a gateway was built with.
 *
 * @param host where it listens
 * @param port 0 for a free one
 * @param advertisedHost what clients are told to connect to
 * @param advertisedPort what clients are told to connect to; 0 for the port it listens on
 * @param nodeId among the gateways of one log
 * @param partitions of a topic that is made because a client asked for it
 * @param createTopics whether it is
 * @param maxFrameBytes the largest request
 * @param maxBatchBytes the largest record batch that is taken
 * @param maxFetchBytes the most that one answer holds, whatever the client asked for, but for its
 *     first batch
 * @param sendBufferBytes that a connection has of the network's memory
 * @param requestTime of a request that names no time of its own
 * @param idleTime after which a silent connection is closed
 */
record GatewaySettings(
    String host,
    int port,
    String advertisedHost,
    int advertisedPort,
    int nodeId,
    int partitions,
    boolean createTopics,
    int maxFrameBytes,
    int maxBatchBytes,
    int maxFetchBytes,
    int sendBufferBytes,
    Duration requestTime,
    Duration idleTime) {
  /**
   * As clients are told.
   *
   * @param listening the port that it listens on
   */
  Node node(int listening) {
    return new Node(nodeId, advertisedHost, advertisedPort == 0 ? listening : advertisedPort);
  }
}
