package dev.timebound.demo.pg;

/**
 * The phases of one run, in seconds, each at least 1 and one after the other.
 *
 * @param warmUp load that counts for nothing but its errors
 * @param normal counted, all well
 * @param frozen the standby is frozen
 * @param thawed it is thawed, all well
 * @param paused its replay is paused
 * @param resumed replay goes on, all well
 * @param killed it is killed
 * @param restarted it is there again, all well
 */
record Phases(
    int warmUp,
    int normal,
    int frozen,
    int thawed,
    int paused,
    int resumed,
    int killed,
    int restarted) {

  Phases {
    for (int seconds :
        new int[] {warmUp, normal, frozen, thawed, paused, resumed, killed, restarted}) {
      if (seconds < 1) {
        throw new IllegalArgumentException("phase: " + seconds + " s (expected: >= 1 s)");
      }
    }
  }

  static Phases full() {
    return new Phases(5, 3, 18, 5, 6, 4, 4, 5);
  }

  static Phases quick() {
    return new Phases(4, 2, 6, 4, 5, 3, 3, 4);
  }

  int freezeAt() {
    return warmUp + normal;
  }

  int thawAt() {
    return freezeAt() + frozen;
  }

  int pauseAt() {
    return thawAt() + thawed;
  }

  int resumeAt() {
    return pauseAt() + paused;
  }

  int killAt() {
    return resumeAt() + resumed;
  }

  int restartAt() {
    return killAt() + killed;
  }

  int total() {
    return restartAt() + restarted;
  }

  /** What goes on in that second, counted from 0. */
  String name(int second) {
    if (second < warmUp) {
      return "warm-up";
    }
    if (second >= freezeAt() && second < thawAt()) {
      return "FROZEN";
    }
    if (second >= pauseAt() && second < resumeAt()) {
      return "STALE";
    }
    return second >= killAt() && second < restartAt() ? "DEAD" : "normal";
  }
}
