package dev.timebound.demo.fetch;

/**
 * How long each run takes, in seconds, each at least 1.
 *
 * @param rehearsal all well, counted nowhere: the first run would else pay for the compiling of
 *     what all share
 * @param warmUp the first seconds of each run, which count for no speed
 * @param halving the rest of the run with halving, whose rounds are long
 * @param others the rest of each of the others
 */
record Phases(int rehearsal, int warmUp, int halving, int others) {

  Phases {
    for (int seconds : new int[] {rehearsal, warmUp, halving, others}) {
      if (seconds < 1) {
        throw new IllegalArgumentException("phase: " + seconds + " s (expected: >= 1 s)");
      }
    }
  }

  static Phases full() {
    return new Phases(4, 2, 18, 12);
  }

  static Phases quick() {
    return new Phases(2, 1, 4, 4);
  }

  /** Of one run of that variant, until its stall is lifted, once every client has had a round. */
  int total(Variant variant) {
    return warmUp + (variant == Variant.HALVING ? halving : others);
  }
}
