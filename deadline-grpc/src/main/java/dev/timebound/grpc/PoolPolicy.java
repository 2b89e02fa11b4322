package dev.timebound.grpc;

import dev.timebound.health.HealthPolicy;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * What a {@link ChannelPoolBuilder} was told of its channels' health, each value validated there,
 * and the engine's policy that it makes.
 */
final class PoolPolicy {
  boolean healthChecks = true;
  Duration suspectAfter = Duration.ofSeconds(1);
  Duration probeTimeout = Duration.ofSeconds(1);
  Duration probeInterval = Duration.ofSeconds(1);
  Duration maxProbeInterval = Duration.ofSeconds(10);
  Duration credentialsTimeout = Duration.ofSeconds(10);
  double maxQuarantined = 0.5;
  boolean replacing = true;
  int offenderQuarantines = 3;
  Duration offenderWithin = Duration.ofMinutes(5);
  double offenderTimesMedian = 2;
  Duration replaceEvery = Duration.ofMinutes(1);
  boolean penalties = true;
  @Nullable Integer penalty;
  Duration penaltyDuration = Duration.ofSeconds(5);
  @Nullable Integer slowStart;
  Duration slowStartTime = Duration.ofSeconds(5);

  /**
   * @param maxRpcsPerChannel the default of what a failure and a return weigh
   * @param replacementLimit how long a new channel may take to answer
   */
  HealthPolicy build(int maxRpcsPerChannel, Duration replacementLimit) {
    HealthPolicy.Builder policy =
        healthChecks
            ? HealthPolicy.silence(suspectAfter)
                .confirmedByProbe(probeTimeout)
                .probeInterval(probeInterval, maxProbeInterval)
                .prepareLimit(credentialsTimeout)
                .maxQuarantined(maxQuarantined)
                .slowStart(slowStart == null ? maxRpcsPerChannel : slowStart, slowStartTime)
            : HealthPolicy.loadOnly();
    if (healthChecks && replacing) {
      policy
          .replaceRepeatOffenders(
              offenderQuarantines, offenderWithin, offenderTimesMedian, replaceEvery)
          .replacementLimit(replacementLimit);
    }
    if (penalties) {
      policy.penalty(penalty == null ? maxRpcsPerChannel : penalty, penaltyDuration);
    }
    return policy.build();
  }
}
