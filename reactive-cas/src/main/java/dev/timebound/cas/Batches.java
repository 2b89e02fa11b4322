package dev.timebound.cas;

import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Packs blobs into batches (CAS-31).
 *
 * @param packs blobs that travel together
 * @param singles blobs too large for any batch
 */
record Batches<T>(List<List<T>> packs, List<T> singles) {
  /** Of one shard at a time, in each direction. */
  static final int AT_ONCE = 4;

  /** What a message of gRPC may have where nobody says otherwise, on either side. */
  private static final long MESSAGE = 4L << 20;

  /** While nothing is known of a server: the smallest limit that servers are known to have. */
  private static final long UNKNOWN = 1L << 20;

  /** Of a message, beside its blobs: an instance's name, the function. */
  private static final long HEADROOM = 16L << 10;

  /** Of each blob, beside its bytes: its digest, a status with a message, tags and lengths. */
  private static final long EACH = WireDigests.MOST_BYTES + 176L;

  /**
   * Bytes of a whole message, so that neither a server's limit, which counts content, nor gRPC's,
   * which counts the message, is met.
   *
   * @param known null where nothing is known of the server yet
   */
  static long limit(@Nullable CasCapabilities known) {
    if (known == null) {
      return UNKNOWN - HEADROOM;
    }
    long told = known.batchBytes() == 0 ? MESSAGE : known.batchBytes();
    return Math.min(told, MESSAGE - HEADROOM);
  }

  /** All fit into one batch. */
  boolean isOne() {
    return packs.size() == 1 && singles.isEmpty();
  }

  static <T> Batches<T> of(List<T> blobs, ToLongFunction<T> size, long limit) {
    List<List<T>> packs = new ArrayList<>();
    List<T> singles = new ArrayList<>();
    List<T> pack = new ArrayList<>();
    long filled = 0;
    for (T blob : blobs) {
      long bytes = size.applyAsLong(blob) + EACH;
      if (bytes > limit) {
        singles.add(blob);
        continue;
      }
      if (filled + bytes > limit) {
        packs.add(pack);
        pack = new ArrayList<>();
        filled = 0;
      }
      pack.add(blob);
      filled += bytes;
    }
    if (!pack.isEmpty()) {
      packs.add(pack);
    }
    return new Batches<>(packs, singles);
  }
}
