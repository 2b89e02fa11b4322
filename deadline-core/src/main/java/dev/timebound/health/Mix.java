package dev.timebound.health;

/**
 * A well mixed function of a counter: cheap randomness that a seed repeats (SplitMix64's finish).
 */
final class Mix {
  static final long STEP = 0x9E3779B97F4A7C15L;

  private Mix() {}

  static long mix(long z) {
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  /** From 0, below 1. */
  static double unit(long z) {
    return (mix(z * STEP) >>> 11) * 0x1.0p-53;
  }
}
