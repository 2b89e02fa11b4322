package dev.timebound.cas;

import java.util.List;

/**
 * Maps digests to shards: each has one home, and an order in which the others stand in for it.
 *
 * <p>Shards are numbered from 0 in the order they were configured in. A selector is immutable and
 * thread-safe, and gives the same answer for ever: only its configuration moves a blob.
 */
public sealed interface ShardSelector permits WeightedRing, RendezvousSelector {
  /** The number of shards, at least 1. */
  int shards();

  /** The digest's home, from 0 to {@link #shards} - 1. Allocates nothing. */
  int home(Digest digest);

  /**
   * Every shard once, beginning with {@link #home}, in the order in which a read tries them. The
   * array is the caller's own.
   */
  int[] candidates(Digest digest);

  /**
   * A ring on which each shard has a part as large as its share of the weights, laid out as
   * NativeLink's shard store does it (CAS-10). A shard's number matters: shards in another order
   * map otherwise. Candidates follow the ring from the home on (CAS-11).
   *
   * @param weights one for each shard, each at least 1
   * @throws IllegalArgumentException where there is no shard, or a weight is below 1
   */
  static ShardSelector weighted(int... weights) {
    return WeightedRing.of(weights);
  }

  /**
   * Rendezvous hashing as Buildbarn's sharding does it (CAS-10a): each shard scores for each
   * digest, the highest is the home, the next the first candidate. A shard is known by its key: the
   * order of the shards does not matter, one that is added takes blobs only for itself, and those
   * of one that is removed go to their next candidates.
   *
   * @param keys one for each shard, all different
   * @param weights one for each shard, each at least 1
   * @throws IllegalArgumentException where there is no shard, keys are equal, a weight is below 1,
   *     or there are not as many weights as keys
   */
  static ShardSelector rendezvous(List<String> keys, int... weights) {
    return RendezvousSelector.of(keys, weights);
  }
}
