package dev.timebound.bigtable;

import dev.timebound.deadline.DeadlineExceededException;
import io.grpc.StatusRuntimeException;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.util.Locale;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** What the client counts. Without a registry it counts nothing. */
abstract class BigtableMeters {
  static final String OK = "ok";
  static final String DEADLINE = "deadline";

  /** What a caller gave up: neither success nor failure. */
  static final String CANCELLED = "cancelled";

  private static final BigtableMeters NONE = new BigtableMeters() {};

  static BigtableMeters of(@Nullable MeterRegistry registry) {
    return registry == null ? NONE : new InRegistry(registry);
  }

  /** The tag for a read that failed. */
  static String outcome(Throwable failure) {
    if (failure instanceof StatusRuntimeException e) {
      return e.getStatus().getCode().name().toLowerCase(Locale.ROOT);
    }
    if (failure instanceof DeadlineExceededException) {
      return DEADLINE;
    }
    return failure instanceof InvalidChunkStreamException ? "invalid" : "error";
  }

  /** A read goes on in another attempt. */
  void resumed(BigtableStatuses.Line reason) {}

  /** A read has ended: ok, cancelled, deadline, invalid, error, or a status's code. */
  void ended(String outcome, int attempts, long nanos) {}

  /** The only place that touches Micrometer's types at run time: it is optional. */
  private static final class InRegistry extends BigtableMeters {
    private final MeterRegistry registry;
    private final Counter attempts;

    /** A look-up in the registry costs more than all else a point read does here. */
    private final ConcurrentHashMap<String, Timer> reads = new ConcurrentHashMap<>();

    InRegistry(MeterRegistry registry) {
      this.registry = registry;
      this.attempts =
          Counter.builder("timebound.bigtable.attempts")
              .description("calls made for reads")
              .register(registry);
    }

    @Override
    void resumed(BigtableStatuses.Line reason) {
      Counter.builder("timebound.bigtable.resumes")
          .description("attempts that took a read up after a failure")
          .tag("reason", reason.name().toLowerCase(Locale.ROOT))
          .register(registry)
          .increment();
    }

    @Override
    void ended(String outcome, int attempts, long nanos) {
      Timer timer = reads.get(outcome);
      if (timer == null) {
        timer = reads.computeIfAbsent(outcome, this::reads);
      }
      timer.record(nanos, TimeUnit.NANOSECONDS);
      this.attempts.increment(attempts);
    }

    private Timer reads(String outcome) {
      return Timer.builder("timebound.bigtable.reads")
          .description("reads from subscription to end")
          .tag("outcome", outcome)
          .register(registry);
    }
  }
}
