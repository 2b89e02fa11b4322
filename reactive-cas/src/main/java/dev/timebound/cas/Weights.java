package dev.timebound.cas;

/** What both selectors ask of their weights. */
final class Weights {
  private Weights() {}

  static void require(int[] weights) {
    if (weights.length == 0) {
      throw new IllegalArgumentException("shards: none (expected: at least 1)");
    }
    for (int i = 0; i < weights.length; i++) {
      if (weights[i] < 1) {
        throw new IllegalArgumentException(
            "weight of shard " + i + ": " + weights[i] + " (expected: >= 1)");
      }
    }
  }
}
