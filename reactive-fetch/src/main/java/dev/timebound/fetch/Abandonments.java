package dev.timebound.fetch;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.scheduler.Scheduler;

/** Counts and tells what was abandoned (FE-23), and tells what failed (FE-25). */
final class Abandonments {
  private static final Logger LOG = LoggerFactory.getLogger(PartitionFetcher.class);

  private final FetchMeters meters;
  private final Scheduler scheduler;
  private final StallLog stalls;
  private final StallLog failures;

  Abandonments(FetchMeters meters, Scheduler scheduler, Duration warnEvery) {
    this.meters = meters;
    this.scheduler = scheduler;
    this.stalls = new StallLog(warnEvery.toNanos());
    this.failures = new StallLog(warnEvery.toNanos());
  }

  /**
   * @param offset what was asked for; −1 where it is not by offset
   * @param stall false of a read that only went too long for the others' sake
   */
  void abandoned(Abandoned what, TopicPartition partition, long offset, boolean stall) {
    meters.abandoned(what);
    if (what.stage() != Abandoned.Stage.READING || !stall) {
      LOG.debug(
          what.stage() == Abandoned.Stage.READING
              ? "fetch read cut: topic={} partition={} offset={} operation={} stage={}"
              : "fetch read not started: topic={} partition={} offset={} operation={} stage={}",
          partition.topic(),
          partition.partition(),
          offset,
          what.operation().tag,
          what.stage().tag);
      return;
    }
    long leftOut = stalls.stalled(partition, scheduler.now(TimeUnit.NANOSECONDS));
    if (leftOut != StallLog.NOT_TOLD) {
      LOG.warn(
          "fetch read deadline exceeded: topic={} partition={} offset={} operation={};"
              + " {} more since the last line on it",
          partition.topic(),
          partition.partition(),
          offset,
          what.operation().tag,
          leftOut);
    }
  }

  /**
   * The store's error, which a protocol's client is not told.
   *
   * @param offset what was asked for; −1 where it is not by offset
   */
  void failed(TopicPartition partition, long offset, @Nullable Throwable cause) {
    long leftOut = failures.stalled(partition, scheduler.now(TimeUnit.NANOSECONDS));
    if (leftOut != StallLog.NOT_TOLD) {
      LOG.warn(
          "fetch read failed: topic={} partition={} offset={}: {}; {} more since the last line on"
              + " it",
          partition.topic(),
          partition.partition(),
          offset,
          String.valueOf(cause),
          leftOut);
      LOG.debug("fetch read failed: {}", partition, cause);
    }
  }
}
