package dev.timebound.cas;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * CAS-10a. With x the digest mixed with the shard's own hash, a uniform number between 0 and 1, the
 * shard with the highest {@code weight / -log2(x)} wins, each as often as its weight says. It is
 * worked out in fixed point, with a table for the logarithm, so that every machine and the deployed
 * systems of this kind come to the same answer.
 */
final class RendezvousSelector implements ShardSelector {
  private static final int FRACTION_BITS = 16;
  private static final int TABLE_BITS = 6;
  private static final int[] LOG2 = log2Table();

  private final long[] shardHashes;
  private final int[] weights;

  private RendezvousSelector(long[] shardHashes, int[] weights) {
    this.shardHashes = shardHashes;
    this.weights = weights;
  }

  static RendezvousSelector of(List<String> keys, int... weights) {
    if (keys.size() != weights.length) {
      throw new IllegalArgumentException(
          "weights: " + weights.length + " (expected: one for each of " + keys.size() + " keys)");
    }
    Weights.require(weights);
    long[] hashes = new long[weights.length];
    Map<Long, String> seen = new HashMap<>();
    for (int i = 0; i < hashes.length; i++) {
      String key = keys.get(i);
      ByteBuffer bytes = ByteBuffer.wrap(key.getBytes(StandardCharsets.UTF_8));
      hashes[i] = Digest.of(bytes, DigestFunction.SHA256).hashHead();
      String twin = seen.put(hashes[i], key);
      if (twin != null) {
        throw new IllegalArgumentException(
            "key of shard " + i + ": " + key + " (expected: another hash than " + twin + " has)");
      }
    }
    return new RendezvousSelector(hashes, weights.clone());
  }

  @Override
  public int shards() {
    return weights.length;
  }

  @Override
  public int home(Digest digest) {
    long head = digest.hashHead();
    int best = 0;
    long held = score(0, head);
    for (int i = 1; i < weights.length; i++) {
      long challenge = score(i, head);
      if (beats(i, challenge, best, held)) {
        best = i;
        held = challenge;
      }
    }
    return best;
  }

  @Override
  public int[] candidates(Digest digest) {
    long head = digest.hashHead();
    int[] order = new int[weights.length];
    long[] scores = new long[order.length]; // a division each: made once
    for (int i = 0; i < order.length; i++) {
      long score = score(i, head);
      int at = i;
      while (at > 0 && beats(i, score, order[at - 1], scores[at - 1])) {
        order[at] = order[at - 1];
        scores[at] = scores[at - 1];
        at--;
      }
      order[at] = i;
      scores[at] = score;
    }
    return order;
  }

  /** Equal scores go to the lower hash, whatever the order of the shards. */
  private boolean beats(int challenger, long challenge, int holder, long held) {
    return challenge != held
        ? challenge > held
        : Long.compareUnsigned(shardHashes[challenger], shardHashes[holder]) < 0;
  }

  private long score(int shard, long head) {
    // at least 1, since the logarithm stays below 64; the weight is below 2^31, so no sign bit
    long minusLog = (64L << FRACTION_BITS) - log2(mix(shardHashes[shard] ^ head));
    return ((long) weights[shard] << 32) / minusLog;
  }

  /** Splitmix64's finaliser: every bit of the input moves half of the output's. */
  private static long mix(long x) {
    long y = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
    long z = (y ^ (y >>> 27)) * 0x94d049bb133111ebL;
    return z ^ (z >>> 31);
  }

  /** The logarithm of an unsigned number, times 2^16; that of 0 is 0. */
  private static long log2(long x) {
    if (x == 0 || x == 1) {
      return 0;
    }
    int whole = Long.SIZE - 1 - Long.numberOfLeadingZeros(x);
    long mantissa = x << (Long.SIZE - whole);
    int entry = (int) (mantissa >>> (Long.SIZE - TABLE_BITS));
    long between = (mantissa << TABLE_BITS) >>> FRACTION_BITS;
    long rise = LOG2[entry + 1] - LOG2[entry];
    long fraction = ((long) LOG2[entry] << 48) + rise * between;
    return ((long) whole << FRACTION_BITS) | (fraction >>> 48);
  }

  private static int[] log2Table() {
    int[] table = new int[(1 << TABLE_BITS) + 1];
    for (int i = 0; i < table.length; i++) {
      double log2 = StrictMath.log1p((double) i / (1 << TABLE_BITS)) / StrictMath.log(2);
      table[i] = (int) Math.round(log2 * (1 << FRACTION_BITS));
    }
    return table;
  }
}
