package dev.timebound.cas;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import org.jspecify.annotations.Nullable;

/** What the ring counts. Without a registry it counts nothing. */
abstract class CasMeters {
  private static final CasMeters NONE = new CasMeters() {};

  /**
   * @param ring its name, a tag of every meter
   */
  static CasMeters of(@Nullable MeterRegistry registry, String ring) {
    return registry == null ? NONE : new InRegistry(registry, ring);
  }

  /**
   * An attempt to connect has failed.
   *
   * @param where shard and endpoint
   */
  void connectFailed(String where) {}

  /** The only place that touches Micrometer's types at run time: it is optional. */
  private static final class InRegistry extends CasMeters {
    private final MeterRegistry registry;
    private final String ring;

    InRegistry(MeterRegistry registry, String ring) {
      this.registry = registry;
      this.ring = ring;
    }

    @Override
    void connectFailed(String where) {
      Counter.builder("timebound.cas.connect.failures")
          .description("attempts to connect to an endpoint that failed")
          .tag("ring", ring)
          .tag("endpoint", where)
          .register(registry)
          .increment();
    }
  }
}
