package dev.timebound.test;

/** What a proxy does to all of its traffic. Written and read on the proxy's event loop. */
final class Impairments {
  /** How long a chunk is under way in one direction; 0 is at once. */
  long delayNanos;

  /** What one direction of one connection passes on in a second; 0 is without a limit. */
  long bytesPerSecond;
}
