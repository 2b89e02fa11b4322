package dev.timebound.grpc;

import dev.timebound.health.HealthPolicy;
import java.time.Duration;
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
    HealthPolicy healthPolicy,
    Scheduler scheduler) {}
