package dev.timebound.demo.cas;

/**
 * How one client came through its run.
 *
 * @param backAfterKillMillis from the restart of the killed shard until it served its own keys
 *     again; -1 where it never did
 * @param backAfterFreezeMillis the same from the thaw of the frozen one
 * @param frozenEarly reads of mirrored blobs that waited for the frozen shard before it had to be
 *     known
 * @param frozenLate those that did so afterwards
 * @param addedFirstByteMillis how much later the first byte of a small mirrored blob of the frozen
 *     shard came once it was known; -1 where there was none
 */
record Report(
    Figures figures,
    long backAfterKillMillis,
    long backAfterFreezeMillis,
    int frozenEarly,
    int frozenLate,
    double addedFirstByteMillis) {

  /** The later of both returns; -1 where one never came. */
  long backMillis() {
    return backAfterKillMillis < 0 || backAfterFreezeMillis < 0
        ? -1
        : Math.max(backAfterKillMillis, backAfterFreezeMillis);
  }
}
