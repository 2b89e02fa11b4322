package dev.timebound.grpc;

/**
 * How many channels the pool should have, from the peak of requests in flight. Pure. (BT-2)
 *
 * @param min channels at least
 * @param max channels at most
 * @param minRpcs requests a channel should carry at the peak, at least
 * @param maxRpcs requests a channel should carry at the peak, at most
 * @param step channels a resize adds or drops, at most
 */
record PoolSizer(int min, int max, int minRpcs, int maxRpcs, int step) {

  /**
   * The size after one resize: inside the band it stays, outside it moves toward the nearest size
   * inside.
   */
  int next(int size, int peak) {
    int smallest = clamp(ceilDiv(peak, maxRpcs));
    int largest = clamp(Math.max(peak / minRpcs, smallest));
    if (size < smallest) {
      return Math.min(smallest, size + step);
    }
    if (size > largest) {
      return Math.max(largest, size - step);
    }
    return size;
  }

  private int clamp(int size) {
    return Math.min(max, Math.max(min, size));
  }

  private static int ceilDiv(int a, int b) {
    return (int) (((long) a + b - 1) / b);
  }
}
