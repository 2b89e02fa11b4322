package dev.timebound.fetch;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** What a fetcher counts, under its name. Without a registry it counts nothing. */
abstract class FetchMeters {
  static final FetchMeters NONE = new FetchMeters() {};

  static FetchMeters of(@Nullable MeterRegistry registry, String fetcher) {
    return registry == null ? NONE : new InRegistry(registry, fetcher);
  }

  /** A read was given up. (FE-23) */
  void abandoned(Abandoned what) {}

  /** A partition's turn ended. */
  void turn(String outcome, long nanos) {}

  /** A request was answered, or cancelled. */
  void request(String outcome, int rounds, long bytes, long nanos) {}

  /** The only place that touches Micrometer's types at run time: it is optional. */
  private static final class InRegistry extends FetchMeters {
    private final MeterRegistry registry;
    private final String fetcher;
    private final DistributionSummary bytes;
    private final DistributionSummary rounds;

    /** A look-up in the registry costs more than the rest of a turn. */
    private final ConcurrentHashMap<String, Timer> requests = new ConcurrentHashMap<>();

    private final ConcurrentHashMap<String, Timer> turns = new ConcurrentHashMap<>();

    InRegistry(MeterRegistry registry, String fetcher) {
      this.registry = registry;
      this.fetcher = fetcher;
      this.bytes =
          DistributionSummary.builder("timebound.fetch.bytes")
              .description("bytes of batches answered by a request")
              .baseUnit("bytes")
              .tag("fetcher", fetcher)
              .register(registry);
      this.rounds =
          DistributionSummary.builder("timebound.fetch.rounds")
              .description("rounds of a request over its partitions")
              .tag("fetcher", fetcher)
              .register(registry);
    }

    @Override
    void abandoned(Abandoned what) {
      Counter.builder("timebound.fetch.read.deadline.exceeded")
          .description("reads that were abandoned")
          .tag("fetcher", fetcher)
          .tag("operation", what.operation().tag)
          .tag("stage", what.stage().tag)
          .register(registry)
          .increment();
    }

    @Override
    void turn(String outcome, long nanos) {
      timer(turns, "timebound.fetch.turns", "turns of partitions", outcome)
          .record(nanos, TimeUnit.NANOSECONDS);
    }

    @Override
    void request(String outcome, int made, long read, long nanos) {
      timer(requests, "timebound.fetch.requests", "requests until their answer", outcome)
          .record(nanos, TimeUnit.NANOSECONDS);
      rounds.record(made);
      bytes.record(read);
    }

    private Timer timer(
        ConcurrentHashMap<String, Timer> known, String name, String description, String outcome) {
      Timer timer = known.get(outcome);
      return timer != null
          ? timer
          : known.computeIfAbsent(
              outcome,
              o ->
                  Timer.builder(name)
                      .description(description)
                      .tag("fetcher", fetcher)
                      .tag("outcome", o)
                      .register(registry));
    }
  }
}
