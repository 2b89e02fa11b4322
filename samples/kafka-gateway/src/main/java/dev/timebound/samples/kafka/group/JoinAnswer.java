package dev.timebound.samples.kafka.group;

import java.util.Map;
import org.apache.kafka.common.protocol.Errors;

/**
 * What a member that wants to join is told.
 *
 * @param memberId the id that the member is to use from now on
 * @param members of the leader's answer: each member with its metadata; empty for all others
 */
public record JoinAnswer(
    Errors error,
    int generation,
    String protocol,
    String leader,
    String memberId,
    Map<String, byte[]> members) {
  static JoinAnswer refused(Errors error, String memberId) {
    return new JoinAnswer(error, -1, "", "", memberId, Map.of());
  }
}
