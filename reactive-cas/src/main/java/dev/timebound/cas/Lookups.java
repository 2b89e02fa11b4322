package dev.timebound.cas;

import dev.timebound.cas.BlobPresence.State;
import java.util.HashSet;
import java.util.Set;
import reactor.core.publisher.Mono;

/** Existence checks of many blobs. */
final class Lookups {
  static final String OPERATION = "cas.find-missing";

  private final RingShards shards;
  private final ShardCalls calls;
  private final CasMeters meters;

  Lookups(RingShards shards, ShardCalls calls, CasMeters meters) {
    this.shards = shards;
    this.calls = calls;
    this.meters = meters;
  }

  /** Never fails for a shard that does not answer: its blobs are {@link State#UNKNOWN}. */
  Mono<BlobPresence> findMissing(Set<Digest> digests) {
    Set<Digest> asked = Set.copyOf(digests);
    return Mono.deferContextual(
            context -> new Lookup(shards, calls, meters, new HashSet<>(asked), context).run())
        .name(OPERATION);
  }
}
