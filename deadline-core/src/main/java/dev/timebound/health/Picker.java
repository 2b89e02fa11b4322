package dev.timebound.health;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Claims the least loaded of some slots, random among equals (HE-5, BT-3). One pass finds the least
 * load and how many have it. Where many have it, one of all is drawn until it is one of them, which
 * is as even as counting to one of them and mostly the first; where few have it a second pass
 * counts. A tie costs one draw of the shared counter, not one a slot, and no tie costs none.
 */
final class Picker {
  /** After that many lost races any of the least loaded will do. */
  private static final int TRIES = 8;

  private final AtomicLong draws;

  Picker(long seed) {
    this.draws = new AtomicLong(seed);
  }

  /**
   * The slot, counted already; null where all are excluded. Only the chosen one is asked whether it
   * is excluded, and all of them where it is.
   */
  <M extends Member> @Nullable Slot<M> claimLeast(Slot<M>[] slots, Predicate<? super M> exclude) {
    for (int tries = 1; ; tries++) {
      int least = Integer.MAX_VALUE;
      int equals = 0;
      int first = -1;
      for (int i = 0; i < slots.length; i++) {
        int load = slots[i].load();
        if (load <= least) {
          if (load < least) {
            least = load;
            equals = 0;
            first = i;
          }
          equals++;
        }
      }
      if (first < 0) {
        return null;
      }
      Slot<M> chosen = equals == 1 ? slots[first] : drawn(slots, first, least, equals);
      if (exclude.test(chosen.member)) {
        return claimLeastBeside(slots, exclude);
      }
      if (claim(chosen, least, tries)) {
        return chosen;
      }
    }
  }

  private <M extends Member> @Nullable Slot<M> claimLeastBeside(
      Slot<M>[] slots, Predicate<? super M> exclude) {
    for (int tries = 1; ; tries++) {
      int least = Integer.MAX_VALUE;
      int equals = 0;
      Slot<M> chosen = null;
      for (Slot<M> s : slots) {
        int load = s.load();
        if (load <= least && !exclude.test(s.member)) {
          equals = load < least ? 1 : equals + 1;
          least = load;
          chosen = s;
        }
      }
      if (chosen == null) {
        return null;
      }
      if (equals > 1) {
        int drawn = below(draw(), equals);
        for (Slot<M> s : slots) {
          if (s.load() == least && !exclude.test(s.member) && drawn-- == 0) {
            chosen = s;
            break;
          }
        }
      }
      if (claim(chosen, least, tries)) {
        return chosen;
      }
    }
  }

  /** HE-12a: from the count that was seen, so that two picks at one moment see each other. */
  private static boolean claim(Slot<?> chosen, int least, int tries) {
    if (tries == TRIES) {
      chosen.claim();
      return true;
    }
    int open = chosen.open;
    return open + chosen.extra <= least && chosen.claimAt(open);
  }

  /** One of those with the least load, each as likely; another, where loads change meanwhile. */
  private <M extends Member> Slot<M> drawn(Slot<M>[] slots, int first, int least, int equals) {
    long draw = draw();
    int n = slots.length;
    for (int i = 0; i < TRIES && 4 * equals >= n; i++, draw += Mix.STEP) {
      Slot<M> any = slots[below(draw, n)];
      if (any.load() == least) {
        return any;
      }
    }
    int drawn = below(draw, equals);
    for (int i = first; i < n; i++) {
      if (slots[i].load() == least && drawn-- == 0) {
        return slots[i];
      }
    }
    return slots[first];
  }

  private long draw() {
    return draws.addAndGet(Mix.STEP);
  }

  /** From 0, below the bound. */
  private static int below(long draw, int bound) {
    return (int) (((Mix.mix(draw) >>> 32) * bound) >>> 32);
  }
}
