package dev.timebound.demo.pg;

/**
 * A steady load: reads and writes arrive at random moments (a Poisson process from the seed),
 * whether or not earlier ones have been answered.
 *
 * @param readsPerSecond reads a second
 * @param writesPerSecond writes a second
 * @param seed of arrivals and rows: the same load for every client
 */
record LoadPlan(int readsPerSecond, int writesPerSecond, long seed) {
  /** One read in so many keeps the server busy for {@link #SLOW_MILLIS}. */
  static final int SLOW_ONE_IN = 4;

  static final int SLOW_MILLIS = 30;

  /** The caller of one read in so many leaves before its statement, of {@link #LEFT_MILLIS}. */
  static final int LEAVES_ONE_IN = 100;

  static final int LEFT_MILLIS = 300;
  static final int LEAVES_AFTER_MILLIS = 100;

  LoadPlan {
    if (readsPerSecond < 1 || writesPerSecond < 1) {
      throw new IllegalArgumentException(
          "a second: "
              + readsPerSecond
              + " reads, "
              + writesPerSecond
              + " writes (expected: >= 1)");
    }
  }

  /** About two reads at a time on a healthy server. */
  static LoadPlan standard() {
    return new LoadPlan(200, 20, 20_260_101);
  }

  @Override
  public String toString() {
    return readsPerSecond
        + " reads/s (1 in "
        + SLOW_ONE_IN
        + " takes "
        + SLOW_MILLIS
        + " ms, 1 in "
        + LEAVES_ONE_IN
        + " is left by its caller), "
        + writesPerSecond
        + " writes/s";
  }
}
