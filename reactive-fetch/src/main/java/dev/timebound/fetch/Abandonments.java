package dev.timebound.fetch;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.scheduler.Scheduler;

/** Counts and tells what was abandoned (FE-23). */
final class Abandonments {
  private static final Logger LOG = LoggerFactory.getLogger(PartitionFetcher.class);

  private final FetchMeters meters;
  private final Scheduler scheduler;
  private final StallLog stalls;

  Abandonments(FetchMeters meters, Scheduler scheduler, Duration warnEvery) {
    this.meters = meters;
    this.scheduler = scheduler;
    this.stalls = new StallLog(warnEvery.toNanos());
  }

  /**
   * @param offset what was asked for; −1 where it is not by offset
   */
  void abandoned(Abandoned what, TopicPartition partition, long offset) {
    meters.abandoned(what);
    if (what.stage() != Abandoned.Stage.READING) {
      LOG.debug(
          "fetch read not started: topic={} partition={} offset={} operation={} stage={}",
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
}
