package dev.timebound.health;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Claims the least loaded of some slots, random among equals (HE-5, BT-3). Two passes: the first
 * finds the least load and how many have it, the second walks to the one drawn. So a tie costs one
 * draw, not one a slot, and the shared counter is touched only where there is a tie.
 */
final class Picker {
  /** After that many lost races any of the least loaded will do. */
  private static final int TRIES = 8;

  private final AtomicLong draws;

  Picker(long seed) {
    this.draws = new AtomicLong(seed);
  }

  /** The slot, counted already; null where all are excluded. */
  <M extends Member> @Nullable Slot<M> claimLeast(Slot<M>[] slots, Predicate<? super M> exclude) {
    for (int tries = 1; ; tries++) {
      int least = Integer.MAX_VALUE;
      int equals = 0;
      Slot<M> chosen = null;
      int seen = 0;
      for (Slot<M> s : slots) {
        int open = s.open;
        int load = open + s.extra;
        if (load <= least && !exclude.test(s.member)) {
          equals = load < least ? 1 : equals + 1;
          least = load;
          chosen = s;
          seen = open;
        }
      }
      if (chosen == null) {
        return null;
      }
      if (equals > 1) {
        int drawn = below(equals);
        for (Slot<M> s : slots) {
          int open = s.open;
          if (open + s.extra == least && !exclude.test(s.member) && drawn-- == 0) {
            chosen = s;
            seen = open;
            break;
          }
        }
      }
      // HE-12a: from the count that was seen, so that two picks at one moment see each other
      if (chosen.claimAt(seen)) {
        return chosen;
      }
      if (tries == TRIES) {
        chosen.claim();
        return chosen;
      }
    }
  }

  /** From 0, below the bound. */
  private int below(int bound) {
    long r = Mix.mix(draws.addAndGet(Mix.STEP));
    return (int) (((r >>> 32) * bound) >>> 32);
  }
}
