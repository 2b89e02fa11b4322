package dev.timebound.bigtable;

import dev.timebound.deadline.DeadlineExceededException;
import io.grpc.StatusRuntimeException;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** What the client counts. Without a registry it counts nothing. */
abstract class BigtableMeters {
  private static final BigtableMeters NONE = new BigtableMeters() {};

  static BigtableMeters of(@Nullable MeterRegistry registry) {
    return registry == null ? NONE : new InRegistry(registry);
  }

  /** The tag for a read that failed. */
  static String outcome(Throwable failure) {
    if (failure instanceof StatusRuntimeException e) {
      return e.getStatus().getCode().name().toLowerCase(Locale.ROOT);
    }
    return failure instanceof DeadlineExceededException ? "deadline" : "invalid";
  }

  /** A read goes on in another attempt. */
  void resumed(String reason) {}

  /** A read has ended: ok, cancelled, or an error's code. */
  void ended(String outcome, int attempts, long nanos) {}

  /** The only place that touches Micrometer's types at run time: it is optional. */
  private static final class InRegistry extends BigtableMeters {
    private final MeterRegistry registry;

    InRegistry(MeterRegistry registry) {
      this.registry = registry;
    }

    @Override
    void resumed(String reason) {
      registry.counter("timebound.bigtable.resumes", "reason", reason).increment();
    }

    @Override
    void ended(String outcome, int attempts, long nanos) {
      registry
          .timer("timebound.bigtable.reads", "outcome", outcome)
          .record(nanos, TimeUnit.NANOSECONDS);
      registry.counter("timebound.bigtable.attempts").increment(attempts);
    }
  }
}
