package dev.timebound.samples.kafka.group;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A consumer that wants into a group, or stays in it through a rebalance.
 *
 * @param memberId as the group gave it; empty for one that is new
 * @param clientId the beginning of a new member's id
 * @param idFirst a new member is given its id first, and joins with it
 * @param sessionTimeout without a sign of life for this long it is taken out
 * @param rebalanceTimeout how long others wait for it in a rebalance
 * @param protocols assignors with the member's metadata for each, the one it likes best first
 */
public record JoinRequest(
    String memberId,
    String clientId,
    boolean idFirst,
    Duration sessionTimeout,
    Duration rebalanceTimeout,
    String protocolType,
    Map<String, byte[]> protocols) {
  public JoinRequest {
    protocols = new LinkedHashMap<>(protocols);
  }
}
