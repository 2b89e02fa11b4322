package dev.timebound.fetch;

import java.util.BitSet;
import java.util.function.IntPredicate;

/**
 * Which partition of a request has its turn next: in the order of the request, those held back last
 * (FE-20), at most so many at once (FE-9). A round is what was due at its start; under a policy
 * that reads one after the other, what becomes due in it belongs to the next one (FE-8). No clock,
 * no timer; of one thread.
 */
final class Turns {
  /** How many run at once, and when one that takes long no longer counts. */
  record Limits(int atOnce, int most, long slowAfter) {
    static final Limits ONE_BY_ONE = new Limits(1, 1, Long.MAX_VALUE);

    boolean together() {
      return slowAfter != ONE_BY_ONE.slowAfter;
    }
  }

  private final Limits limits;
  private final boolean together;
  private final BitSet round = new BitSet();
  private final BitSet later = new BitSet();
  private final BitSet running = new BitSet();
  private final long[] startedAt;

  Turns(int partitions, Limits limits) {
    this.limits = limits;
    this.together = limits.together();
    this.startedAt = new long[partitions];
  }

  /** A partition wants a turn; once more where its turn runs now. */
  void due(int partition) {
    if (!round.get(partition)) {
      (together && !running.get(partition) ? round : later).set(partition);
    }
  }

  /** Begins the next round with what has become due; false where nothing has. */
  boolean nextRound() {
    round.or(later);
    later.clear();
    return !round.isEmpty();
  }

  /** The partition whose turn is next, not begun yet; −1 where none is, or none may be yet. */
  int next(long now, IntPredicate heldBack) {
    if (round.isEmpty() || running.cardinality() >= limits.most || counting(now) >= limits.atOnce) {
      return -1;
    }
    for (int i = round.nextSetBit(0); i >= 0; i = round.nextSetBit(i + 1)) {
      if (!heldBack.test(i)) {
        return i;
      }
    }
    return round.nextSetBit(0);
  }

  /** Partitions of this round that have not had their turn, with the one that begins now. */
  int left() {
    return round.cardinality();
  }

  /** Whether one runs that counts: it has not taken long yet. */
  boolean isBusy(long now) {
    return counting(now) > 0;
  }

  /** It has its turn, or is passed over: it counts no more from now on. */
  void begin(int partition, long now) {
    round.clear(partition);
    running.set(partition);
    startedAt[partition] = now;
  }

  void ended(int partition) {
    running.clear(partition);
    if (together && later.get(partition)) {
      later.clear(partition);
      round.set(partition);
    }
  }

  /** It wants no turn any more. */
  void never(int partition) {
    round.clear(partition);
    later.clear(partition);
  }

  boolean isRunning() {
    return !running.isEmpty();
  }

  /** All partitions of the round have had their turn, and no turn runs. */
  boolean roundOver() {
    return round.isEmpty() && running.isEmpty();
  }

  /** When a turn that runs stops to count, so that another one may begin; Long.MAX_VALUE: never. */
  long nextPlaceAt(long now) {
    long next = Long.MAX_VALUE;
    if (together && !round.isEmpty()) {
      for (int i = running.nextSetBit(0); i >= 0; i = running.nextSetBit(i + 1)) {
        long slow = startedAt[i] + limits.slowAfter;
        if (slow > now) {
          next = Math.min(next, slow);
        }
      }
    }
    return next;
  }

  private int counting(long now) {
    int counting = 0;
    for (int i = running.nextSetBit(0); i >= 0; i = running.nextSetBit(i + 1)) {
      if (now - startedAt[i] < limits.slowAfter) {
        counting++;
      }
    }
    return counting;
  }
}
