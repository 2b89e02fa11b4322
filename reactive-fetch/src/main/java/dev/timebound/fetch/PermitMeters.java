package dev.timebound.fetch;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** What a bounded store counts. Without a registry it counts nothing. */
abstract class PermitMeters {
  private static final PermitMeters NONE = new PermitMeters() {};

  static PermitMeters of(@Nullable MeterRegistry registry, String store, Permits permits) {
    return registry == null ? NONE : new InRegistry(registry, store, permits);
  }

  /** A call had, or did not get, its permit. */
  void waited(boolean granted, long nanos) {}

  /** The only place that touches Micrometer's types at run time: it is optional. */
  private static final class InRegistry extends PermitMeters {
    private final Timer granted;
    private final Timer refused;

    InRegistry(MeterRegistry registry, String store, Permits permits) {
      granted = wait(registry, store, true);
      refused = wait(registry, store, false);
      Gauge.builder("timebound.fetch.permits.held", permits, Permits::held)
          .description("permits of a bounded store that are held now")
          .tag("store", store)
          .register(registry);
      Gauge.builder("timebound.fetch.permits.waiting", permits, Permits::waiting)
          .description("calls that wait for a permit of a bounded store now")
          .tag("store", store)
          .register(registry);
    }

    private static Timer wait(MeterRegistry registry, String store, boolean granted) {
      return Timer.builder("timebound.fetch.permit.wait")
          .description("waits for a permit of a bounded store")
          .tag("store", store)
          .tag("granted", Boolean.toString(granted))
          .register(registry);
    }

    @Override
    void waited(boolean had, long nanos) {
      (had ? granted : refused).record(nanos, TimeUnit.NANOSECONDS);
    }
  }
}
