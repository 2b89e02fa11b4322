package dev.timebound.cas;

import dev.timebound.health.Candidates;
import dev.timebound.health.HealthGroup;
import java.util.ArrayList;
import java.util.List;

/** The ring's shards, which of them a digest belongs to, and how they stand. */
final class RingShards {
  private final ShardSelector selector;
  private final List<Shard> all;
  private final HealthGroup<Shard> group;

  /**
   * @param all in the order of the configuration
   * @param group has them as its members
   */
  RingShards(ShardSelector selector, List<Shard> all, HealthGroup<Shard> group) {
    this.selector = selector;
    this.all = List.copyOf(all);
    this.group = group;
  }

  List<Shard> all() {
    return all;
  }

  /** The digest's home, where it is written. */
  Shard home(Digest digest) {
    return all.get(selector.home(digest));
  }

  /** Every shard, in the order in which a read of this digest tries them: its home first. */
  List<Shard> order(Digest digest) {
    int[] candidates = selector.candidates(digest);
    List<Shard> order = new ArrayList<>(candidates.length);
    for (int shard : candidates) {
      order.add(all.get(shard));
    }
    return order;
  }

  /** The same, as their places in {@link #all}. */
  int[] places(Digest digest) {
    return selector.candidates(digest);
  }

  /** Claims of these shards, one after the other, with their health taken into account. */
  Candidates<Shard> claims(List<Shard> order) {
    return group.inOrder(order, null);
  }
}
