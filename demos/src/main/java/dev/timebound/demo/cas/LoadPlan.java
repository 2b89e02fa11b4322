package dev.timebound.demo.cas;

import java.time.Duration;

/**
 * A steady load: calls arrive at random moments (a Poisson process from the seed), whether or not
 * earlier ones have been answered.
 *
 * @param readsPerSecond reads of a blob
 * @param checksPerSecond checks of {@link #KEYS} keys, half of which are nowhere
 * @param writesPerSecond writes of a new blob of 1 to 64 KiB
 * @param deadline what each call has, but for large blobs
 * @param seed of arrivals and choices: the same load for every client
 */
record LoadPlan(
    int readsPerSecond, int checksPerSecond, int writesPerSecond, Duration deadline, long seed) {
  static final int KEYS = 40;

  /** Of so many reads: one of 64 MiB; of 8 MiB; of 1 MiB; of 256 KiB; all others are smaller. */
  static final int OF = 400;

  static final int LARGEST_OF = 2;
  static final int LARGE_OF = 8;
  static final int MIB_OF = 20;
  static final int MIDDLE_OF = 40;

  /** One read in so many is of a blob that has no mirror. */
  static final int UNMIRRORED_ONE_IN = 5;

  /** How long after its deadline a call may be answered before it counts as never answered. */
  static final Duration GRACE = Duration.ofSeconds(5);

  static LoadPlan standard(Duration deadline) {
    return new LoadPlan(80, 8, 8, deadline, 20_260_101);
  }

  /** What a call about that blob has: {@link #deadline}, and a second more for every 8 MiB. */
  Duration time(Blob blob) {
    return deadline.plusSeconds(blob.size() / (8 * Blobs.MIB));
  }

  int perSecond() {
    return readsPerSecond + checksPerSecond + writesPerSecond;
  }

  @Override
  public String toString() {
    return readsPerSecond
        + " reads/s of 1 KiB to 64 MiB (1 in "
        + UNMIRRORED_ONE_IN
        + " has no mirror), "
        + checksPerSecond
        + " checks/s of "
        + KEYS
        + " keys, "
        + writesPerSecond
        + " writes/s; each call has "
        + deadline.toSeconds()
        + " s, and 1 s more for every 8 MiB";
  }
}
