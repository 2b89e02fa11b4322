package dev.timebound.grpc;

import dev.timebound.health.HealthPolicy;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Scheduler;

/** The pool's settings, validated by {@link ChannelPoolBuilder}. */
record ChannelPoolSettings(
    String name,
    int initialChannels,
    int minChannels,
    int maxChannels,
    int minRpcsPerChannel,
    int maxRpcsPerChannel,
    boolean resizing,
    Duration resizeInterval,
    int maxResizeStep,
    boolean warming,
    Duration warmTimeout,
    boolean refreshing,
    Duration refreshAfter,
    boolean connectChecks,
    Duration connectTimeout,
    int maxCancels,
    Duration cancelInterval,
    Duration suspectAfter,
    HealthPolicy healthPolicy,
    Scheduler scheduler) {

  /** Of one connection; null where resets are not paced. (BT-21a) */
  @Nullable CancelPacer cancelPacer() {
    return maxCancels == 0
        ? null
        : new CancelPacer(maxCancels, cancelInterval.toNanos(), scheduler);
  }

  /**
   * How late an event loop may be before it counts as blocked: well within the wait that makes a
   * channel suspect. (BT-43)
   */
  long loopPatienceNanos() {
    return suspectAfter.toNanos() / 4;
  }
}
