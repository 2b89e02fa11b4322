package dev.timebound.grpc;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.List;
import java.util.function.ToDoubleFunction;

/**
 * The pool's meters. The only class of the package that touches Micrometer's types at run time: it
 * is optional.
 */
final class PoolMeters {
  private static final String CHANNELS = "timebound.pool.channels";

  private PoolMeters() {}

  /**
   * @return removes them, and no other pool's
   */
  static Runnable bind(ChannelPool pool, MeterRegistry registry) {
    // A second meter under the same tag would be the first one: it would not tell of this pool, and
    // go with the other.
    synchronized (registry) {
      String tag = free(pool.name(), registry);
      List<Meter> all =
          List.of(
              Gauge.builder(CHANNELS, pool, ChannelPool::openChannels)
                  .description("channels not shut down, those that drain too")
                  .tag("pool", tag)
                  .register(registry),
              Gauge.builder("timebound.pool.in.flight", pool, ChannelPool::inFlight)
                  .description("calls started whose response body has not ended")
                  .tag("pool", tag)
                  .register(registry),
              FunctionCounter.builder(
                      "timebound.pool.quarantined.calls", pool, ChannelPool::quarantinedCalls)
                  .description("calls that a quarantine ended locally")
                  .tag("pool", tag)
                  .register(registry),
              Gauge.builder("timebound.pool.unconnected", pool, ChannelPool::unconnected)
                  .description("channels avoided since they do not get connected")
                  .tag("pool", tag)
                  .register(registry),
              Gauge.builder("timebound.pool.delayed.cancels", pool, ChannelPool::delayedCancels)
                  .description("cancelled calls whose server is told when there is room")
                  .tag("pool", tag)
                  .register(registry),
              replaced(pool, ChannelPool::offendersReplaced, "offender", tag, registry),
              replaced(pool.care(), PoolCare::refreshed, "age", tag, registry),
              replaced(pool.care(), PoolCare::reconnected, "unconnected", tag, registry),
              FunctionCounter.builder(
                      "timebound.pool.replacements.failed", pool.care(), PoolCare::failed)
                  .description("channels that were due and stayed: no new one could be warmed")
                  .tag("pool", tag)
                  .register(registry));
      return () -> all.forEach(registry::remove);
    }
  }

  private static <T> Meter replaced(
      T of, ToDoubleFunction<T> count, String reason, String pool, MeterRegistry registry) {
    return FunctionCounter.builder("timebound.pool.replaced", of, count)
        .description("channels replaced by a warmed one")
        .tag("pool", pool)
        .tag("reason", reason)
        .register(registry);
  }

  private static String free(String name, MeterRegistry registry) {
    String tag = name;
    for (int i = 2; registry.find(CHANNELS).tag("pool", tag).meter() != null; i++) {
      tag = name + "#" + i;
    }
    return tag;
  }
}
