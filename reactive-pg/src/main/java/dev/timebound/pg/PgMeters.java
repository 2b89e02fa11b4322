package dev.timebound.pg;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/** What the module counts. Without a registry it counts nothing. */
abstract class PgMeters {
  static final PgMeters NONE = new PgMeters() {};

  static PgMeters of(@Nullable MeterRegistry registry) {
    return registry == null ? NONE : new InRegistry(registry);
  }

  /** A read or transaction was sent on its way. (PG-11) */
  void routed(RouteTarget target, RouteReason reason) {}

  /** A reader connection was closed in place of going back. (PG-17) */
  void closed(String reader, CloseReason reason) {}

  /** A dial ended: ok, failed or timeout. */
  void dialled(String reader, String outcome) {}

  /** A reader turned out to be no standby any more. (PG-14a) */
  void promoted(String reader) {}

  /** A figure of a reader's pool. */
  <T> void gauge(String name, String reader, T of, ToDoubleFunction<T> value) {}

  /** The only place that touches Micrometer's types at run time: it is optional. */
  private static final class InRegistry extends PgMeters {
    private final MeterRegistry registry;

    InRegistry(MeterRegistry registry) {
      this.registry = registry;
    }

    @Override
    void routed(RouteTarget target, RouteReason reason) {
      Counter.builder("timebound.pg.routes")
          .description("reads and transactions by where they went, and why")
          .tag("target", target.tag())
          .tag("reason", reason.tag())
          .register(registry)
          .increment();
    }

    @Override
    void closed(String reader, CloseReason reason) {
      Counter.builder("timebound.pg.release.closed")
          .description("reader connections closed in place of going back to their pool")
          .tag("reader", reader)
          .tag("reason", reason.tag())
          .register(registry)
          .increment();
    }

    @Override
    void dialled(String reader, String outcome) {
      Counter.builder("timebound.pg.dials")
          .description("reader connections dialled")
          .tag("reader", reader)
          .tag("outcome", outcome)
          .register(registry)
          .increment();
    }

    @Override
    void promoted(String reader) {
      Counter.builder("timebound.pg.reader.promoted")
          .description("times that a reader turned out to be promoted")
          .tag("reader", reader)
          .register(registry)
          .increment();
    }

    @Override
    <T> void gauge(String name, String reader, T of, ToDoubleFunction<T> value) {
      Gauge.builder(name, of, value).tag("reader", reader).register(registry);
    }
  }
}
