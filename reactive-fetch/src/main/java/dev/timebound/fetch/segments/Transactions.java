package dev.timebound.fetch.segments;

import dev.timebound.fetch.AbortedTransaction;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The transactions of a partition: those open, and those that were aborted. Immutable.
 *
 * @param open the first offset of each producer's
 * @param aborted in the order in which they ended
 */
record Transactions(Map<Long, Long> open, List<Aborted> aborted) {
  static final Transactions NONE = new Transactions(Map.of(), List.of());

  /**
   * One that was aborted.
   *
   * @param last the offset of its marker
   * @param stable the last stable offset once it had ended: what ends later began there or after
   */
  record Aborted(long producerId, long first, long last, long stable) {}

  boolean isOpen(long producerId) {
    return open.containsKey(producerId);
  }

  /** With a batch, or a marker, which ends nothing where nothing is open. */
  Transactions after(Frame.Kind kind, long producerId, long base, int records) {
    return switch (kind) {
      case PLAIN -> this;
      case TRANSACTIONAL -> opened(producerId, base);
      case COMMIT, ABORT -> ended(producerId, kind == Frame.Kind.ABORT, base + records - 1);
    };
  }

  private Transactions opened(long producerId, long base) {
    if (open.containsKey(producerId)) {
      return this;
    }
    Map<Long, Long> more = new LinkedHashMap<>(open);
    more.put(producerId, base);
    return new Transactions(more, aborted);
  }

  private Transactions ended(long producerId, boolean abort, long marker) {
    @Nullable Long first = open.get(producerId);
    if (first == null) {
      return this;
    }
    Map<Long, Long> fewer = new LinkedHashMap<>(open);
    fewer.remove(producerId);
    if (!abort) {
      return new Transactions(fewer, aborted);
    }
    List<Aborted> more = new ArrayList<>(aborted);
    more.add(new Aborted(producerId, first, marker, stable(fewer, marker + 1)));
    return new Transactions(fewer, more);
  }

  /** The last stable offset of a partition that ends there. */
  long stable(long end) {
    return stable(open, end);
  }

  private static long stable(Map<Long, Long> open, long end) {
    long stable = end;
    for (long first : open.values()) {
      stable = Math.min(stable, first);
    }
    return stable;
  }

  /** Without those that ended before an offset. */
  Transactions since(long offset) {
    int from = firstEndingAt(offset);
    return from == 0
        ? this
        : new Transactions(open, List.copyOf(aborted.subList(from, aborted.size())));
  }

  /** Those aborted whose marker is at an offset or after it. */
  List<Aborted> abortedSince(long offset) {
    return aborted.subList(firstEndingAt(offset), aborted.size());
  }

  /** The aborted ones that have records between two offsets, both inclusive. */
  List<AbortedTransaction> within(long base, long last) {
    if (aborted.isEmpty()) {
      return List.of();
    }
    List<AbortedTransaction> within = new ArrayList<>(0);
    for (int i = firstEndingAt(base); i < aborted.size(); i++) {
      Aborted each = aborted.get(i);
      if (each.first <= last) {
        within.add(new AbortedTransaction(each.producerId, each.first));
      }
      if (each.stable > last) {
        break;
      }
    }
    return within;
  }

  private int firstEndingAt(long offset) {
    int low = 0;
    int high = aborted.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (aborted.get(middle).last < offset) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}
