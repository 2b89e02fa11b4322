package dev.timebound.demo.cas;

import java.time.Duration;

/**
 * The phases of one run, in seconds, one after the other, and the ring's cooldown that suits them.
 *
 * @param warmUp load that counts for nothing but its errors
 * @param normal counted, all well
 * @param killed one shard is dead
 * @param revived it is there again
 * @param frozen another one is frozen
 * @param thawed it is thawed
 * @param cooldown what Timebound's ring is given
 */
record Phases(
    int warmUp, int normal, int killed, int revived, int frozen, int thawed, Duration cooldown) {

  static Phases full() {
    return new Phases(4, 5, 12, 9, 18, 9, Duration.ofSeconds(5));
  }

  static Phases quick() {
    return new Phases(1, 2, 3, 4, 9, 3, Duration.ofSeconds(2));
  }

  int killAt() {
    return warmUp + normal;
  }

  int restartAt() {
    return killAt() + killed;
  }

  int freezeAt() {
    return restartAt() + revived;
  }

  int thawAt() {
    return freezeAt() + frozen;
  }

  int total() {
    return thawAt() + thawed;
  }

  /** What goes on in that second, counted from 0. */
  String name(int second) {
    if (second < warmUp) {
      return "warm-up";
    }
    if (second >= killAt() && second < restartAt()) {
      return "DEAD";
    }
    return second >= freezeAt() && second < thawAt() ? "FROZEN" : "normal";
  }
}
