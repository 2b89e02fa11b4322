package dev.timebound.demo.bigtable;

/**
 * The phases of one run, in seconds.
 *
 * @param warmUp load that is checked and not timed, at least 1
 * @param normal timed, before the stall, at least 1
 * @param stalled how long the connection is stalled, at least 1
 * @param after after the stall; goes on for up to {@link #MORE} while a channel that was taken out
 *     is not back yet
 */
public record Phases(int warmUp, int normal, int stalled, int after) {
  static final int MORE = 20;

  public Phases {
    atLeast(1, "warmUp", warmUp);
    atLeast(1, "normal", normal);
    atLeast(1, "stalled", stalled);
    atLeast(0, "after", after);
  }

  public static Phases full() {
    return new Phases(8, 4, 10, 10);
  }

  /** About 20 s in all. */
  public static Phases quick() {
    return new Phases(4, 1, 10, 5);
  }

  int total() {
    return warmUp + normal + stalled + after;
  }

  private static void atLeast(int least, String name, int value) {
    if (value < least) {
      throw new IllegalArgumentException(name + ": " + value + " (expected: >= " + least + ")");
    }
  }
}
