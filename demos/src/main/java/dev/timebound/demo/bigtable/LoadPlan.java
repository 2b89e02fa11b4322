package dev.timebound.demo.bigtable;

/**
 * A steady load. Point reads and short scans arrive at random moments (a Poisson process from the
 * seed), whether or not earlier ones have been answered. Open scans stay open all the time and are
 * read at a steady pace: the steady ones fast enough to use up what the client holds in its windows
 * within a second or two, the lazy ones far slower than the server could send.
 *
 * @param pointsPerSecond point reads a second
 * @param shortScansPerSecond short scans a second
 * @param shortScanRows rows of a short scan
 * @param steadyScans how many open scans are read steadily
 * @param steadyRows rows a second of each of them
 * @param lazyScans how many are read lazily
 * @param lazyRows rows a second of each of them
 * @param seed of arrivals and keys: the same load for every client
 */
public record LoadPlan(
    int pointsPerSecond,
    int shortScansPerSecond,
    int shortScanRows,
    int steadyScans,
    int steadyRows,
    int lazyScans,
    int lazyRows,
    long seed) {

  public LoadPlan {
    atLeast(1, "pointsPerSecond", pointsPerSecond);
    atLeast(1, "shortScansPerSecond", shortScansPerSecond);
    atLeast(1, "shortScanRows", shortScanRows);
    atLeast(0, "steadyScans", steadyScans);
    atLeast(1, "steadyRows", steadyRows);
    atLeast(0, "lazyScans", lazyScans);
    atLeast(1, "lazyRows", lazyRows);
  }

  /** What the emulator serves at well under half of its power. */
  public static LoadPlan forEmulator() {
    return new LoadPlan(400, 80, 12, 5, 800, 20, 20, 20_260_101);
  }

  /** More of it, for a server that costs next to nothing. */
  public static LoadPlan forFastServer() {
    return new LoadPlan(600, 120, 12, 6, 2_000, 20, 20, 20_260_101);
  }

  /** About how many rows a second all of it asks for. */
  public int rowsPerSecond() {
    return pointsPerSecond
        + shortScansPerSecond * shortScanRows
        + steadyScans * steadyRows
        + lazyScans * lazyRows;
  }

  @Override
  public String toString() {
    return pointsPerSecond
        + " point reads/s, "
        + shortScansPerSecond
        + " scans/s of "
        + shortScanRows
        + " rows, "
        + steadyScans
        + " open scans at "
        + steadyRows
        + " rows/s, "
        + lazyScans
        + " at "
        + lazyRows
        + " rows/s";
  }

  private static void atLeast(int least, String name, int value) {
    if (value < least) {
      throw new IllegalArgumentException(name + ": " + value + " (expected: >= " + least + ")");
    }
  }
}
