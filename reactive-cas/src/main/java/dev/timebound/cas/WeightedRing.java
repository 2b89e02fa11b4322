package dev.timebound.cas;

/** CAS-10 and CAS-11. All figures are unsigned 32-bit ones, held in longs. */
final class WeightedRing implements ShardSelector {
  private static final long LAST = 0xFFFF_FFFFL;

  /** The last key of each shard; a shard too light for a key of its own has its neighbour's. */
  private final long[] lastKeys;

  private WeightedRing(long[] lastKeys) {
    this.lastKeys = lastKeys;
  }

  static WeightedRing of(int... weights) {
    Weights.require(weights);
    long total = 0;
    for (int weight : weights) {
      total += weight;
    }
    long[] lastKeys = new long[weights.length];
    long sum = 0;
    for (int i = 0; i < weights.length; i++) {
      // below 2^63: the weight is below 2^31
      sum += LAST * weights[i] / total;
      lastKeys[i] = sum;
    }
    return new WeightedRing(lastKeys);
  }

  @Override
  public int shards() {
    return lastKeys.length;
  }

  @Override
  public int home(Digest digest) {
    long key = Integer.toUnsignedLong(digest.ringKey());
    // what the rounding leaves over at the top is the last shard's: the search ends there
    int low = 0;
    int high = lastKeys.length - 1;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (lastKeys[middle] >= key) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  @Override
  public int[] candidates(Digest digest) {
    int[] order = new int[lastKeys.length];
    int shard = home(digest);
    for (int i = 0; i < order.length; i++) {
      order[i] = shard;
      shard = shard + 1 == order.length ? 0 : shard + 1;
    }
    return order;
  }
}
