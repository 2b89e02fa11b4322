package dev.timebound.cas;

import dev.timebound.health.Member;
import dev.timebound.health.ProbeAnswer;
import reactor.core.publisher.Mono;

/**
 * One shard of the ring, as the health engine knows it.
 *
 * @param index its place in the configuration, which the mapping is made of
 */
record Shard(int index, String name, String instanceName, ShardConnection connection)
    implements Member {

  /**
   * The ring's policy sends no probes, its trials are requests; a shard answers one all the same.
   */
  @Override
  public Mono<ProbeAnswer> probe() {
    return Mono.defer(() -> connection.channel(true)).thenReturn(ProbeAnswer.ANSWERED);
  }

  @Override
  public String toString() {
    return name;
  }
}
