package dev.timebound.demo.cas;

import dev.timebound.cas.Digest;
import dev.timebound.cas.ShardSelector;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** What the ring holds, from one seed: the same blobs for every client. */
final class Blobs {
  static final int KIB = 1 << 10;
  static final int MIB = 1 << 20;

  /** Small enough that the time to the first byte says nothing of their size. */
  static final int SMALL = 16 * KIB;

  /** Sizes of mirrored blobs that every shard is home to. */
  private static final int[] OF_EACH_SHARD = {
    KIB, KIB, KIB, 4 * KIB, 4 * KIB, SMALL, SMALL, 256 * KIB, MIB
  };

  private static final int LARGE = 8 * MIB;
  private static final int LARGE_ONES = 4;
  private static final int LARGEST = 64 * MIB;
  private static final int UNMIRRORED = 4 * KIB;
  private static final int UNMIRRORED_OF_EACH = 4;

  private final ShardSelector selector;
  private final SplittableRandom seeds;
  private final List<Blob> mirrored = new ArrayList<>();
  private final List<Blob> unmirrored = new ArrayList<>();
  private final int toKill;
  private final int toFreeze;

  Blobs(ShardSelector selector, long seed) {
    this.selector = selector;
    this.seeds = new SplittableRandom(seed);
    // a shard that dies and one that freezes, each home to one of the largest blobs
    Blob first = make(LARGEST, -1, true);
    Blob second = first;
    while (second.home() == first.home()) {
      second = make(LARGEST, -1, true);
    }
    toKill = first.home();
    toFreeze = second.home();
    mirrored.add(first);
    mirrored.add(second);
    for (int i = 0; i < LARGE_ONES; i++) {
      mirrored.add(make(LARGE, -1, true));
    }
    for (int shard = 0; shard < selector.shards(); shard++) {
      for (int size : OF_EACH_SHARD) {
        mirrored.add(make(size, shard, true));
      }
      for (int i = 0; i < UNMIRRORED_OF_EACH; i++) {
        unmirrored.add(make(UNMIRRORED, shard, false));
      }
    }
  }

  /** A blob of that size whose home is that shard, any where it is negative. */
  private Blob make(int size, int home, boolean mirror) {
    while (true) {
      long seed = seeds.nextLong();
      Digest digest = Digest.of(content(seed, size));
      int found = selector.home(digest);
      if (home < 0 || found == home) {
        return new Blob(digest, seed, found, mirror);
      }
    }
  }

  static byte[] content(long seed, int size) {
    byte[] content = new byte[size];
    new SplittableRandom(seed).nextBytes(content);
    return content;
  }

  /** The shard that is to be killed. */
  int toKill() {
    return toKill;
  }

  /** The shard that is to freeze, another one. */
  int toFreeze() {
    return toFreeze;
  }

  /** On their home and on the shard after it. */
  List<Blob> mirrored() {
    return mirrored;
  }

  /** On their home alone. */
  List<Blob> unmirrored() {
    return unmirrored;
  }

  /** Where a blob is to be: its home, and its mirror where it has one. */
  List<Integer> places(Blob blob) {
    int[] candidates = selector.candidates(blob.digest());
    return blob.mirrored() ? List.of(candidates[0], candidates[1]) : List.of(candidates[0]);
  }

  /** Bytes of all blobs, each counted once. */
  long bytes() {
    return mirrored.stream().mapToLong(Blob::size).sum()
        + unmirrored.stream().mapToLong(Blob::size).sum();
  }
}
