package dev.timebound.grpc;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;

/**
 * The pool's meters. The only class of the package that touches Micrometer's types at run time: it
 * is optional.
 */
final class PoolMeters {
  private PoolMeters() {}

  static void bind(ChannelPool pool, MeterRegistry registry) {
    Gauge.builder("timebound.pool.channels", pool, ChannelPool::openChannels)
        .description("channels not shut down, those that drain too")
        .tag("pool", pool.name())
        .register(registry);
    Gauge.builder("timebound.pool.in.flight", pool, ChannelPool::inFlight)
        .description("calls started whose response body has not ended")
        .tag("pool", pool.name())
        .register(registry);
    FunctionCounter.builder("timebound.pool.quarantined.calls", pool, ChannelPool::quarantinedCalls)
        .description("calls that a quarantine ended locally")
        .tag("pool", pool.name())
        .register(registry);
  }
}
