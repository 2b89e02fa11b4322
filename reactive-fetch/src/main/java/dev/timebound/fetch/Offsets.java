package dev.timebound.fetch;

/**
 * Where a partition begins and ends.
 *
 * @param logStart the first offset that can be read
 * @param highWatermark one past the last offset that readers may see
 * @param lastStable one past the last offset before the first open transaction; the high watermark
 *     where none is open
 * @param authoritative false for a copy that may lag, whose word does not make an offset out of
 *     range (FE-12)
 */
public record Offsets(long logStart, long highWatermark, long lastStable, boolean authoritative) {
  public Offsets {
    if (logStart < 0) {
      throw Settings.refused("logStart", logStart, ">= 0");
    }
    if (highWatermark < logStart) {
      throw Settings.refused("highWatermark", highWatermark, ">= logStart " + logStart);
    }
    if (lastStable > highWatermark) {
      throw Settings.refused("lastStable", lastStable, "<= highWatermark " + highWatermark);
    }
  }

  /** On the authority's word. */
  public static Offsets of(long logStart, long highWatermark, long lastStable) {
    return new Offsets(logStart, highWatermark, lastStable, true);
  }

  /** The same, from a copy that may lag behind. */
  public Offsets ofReplica() {
    return new Offsets(logStart, highWatermark, lastStable, false);
  }

  boolean contains(long offset) {
    return offset >= logStart && offset <= highWatermark;
  }

  /** One past the last offset that a reader of this isolation sees. */
  long end(Isolation isolation) {
    return isolation == Isolation.READ_COMMITTED ? lastStable : highWatermark;
  }

  /**
   * These, raised to cover what was read since (FE-10). What a READ_COMMITTED reader was given was
   * stable; of what another was given that is not known.
   */
  Offsets covering(long nextOffset, Isolation isolation) {
    long watermark = Math.max(highWatermark, nextOffset);
    long stable =
        isolation == Isolation.READ_COMMITTED ? Math.max(lastStable, nextOffset) : lastStable;
    return new Offsets(logStart, watermark, stable, authoritative);
  }
}
