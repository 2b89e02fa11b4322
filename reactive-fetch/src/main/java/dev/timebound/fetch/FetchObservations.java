package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.LedgerEntry;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.util.context.ContextView;

/**
 * Tells an observation registry of each request. Without one, or with one that observes nothing, it
 * makes nothing.
 */
abstract class FetchObservations {
  static final FetchObservations NONE = new FetchObservations() {};

  static FetchObservations of(@Nullable ObservationRegistry registry) {
    return registry == null || registry.isNoop() ? NONE : new InRegistry(registry);
  }

  /**
   * A request begins.
   *
   * @param context the subscriber's: the parent observation is in it, where there is one
   */
  Observed begin(FetchRequest request, ContextView context) {
    return Observed.NOT;
  }

  /** One request under observation. */
  abstract static class Observed {
    private static final Observed NOT = new Observed() {};

    /** It has ended: called once. */
    void ended(String outcome, long bytes, Deadline deadline) {}
  }

  /** The only place that touches Micrometer's types at run time: it is optional. */
  private static final class InRegistry extends FetchObservations {
    private static final Logger LOG = LoggerFactory.getLogger(PartitionFetcher.class);

    /** Where Micrometer's own thread-local accessor keeps it. */
    private static final String PARENT = "micrometer.observation";

    private final ObservationRegistry registry;

    InRegistry(ObservationRegistry registry) {
      this.registry = registry;
    }

    @Override
    Observed begin(FetchRequest request, ContextView context) {
      Observation observation;
      try {
        observation =
            Observation.createNotStarted("timebound.fetch", registry).contextualName("fetch");
        if (observation.isNoop()) {
          return Observed.NOT;
        }
        if (context.getOrDefault(PARENT, null) instanceof Observation parent) {
          observation.parentObservation(parent);
        }
        observation.highCardinalityKeyValue(
            "partitions", Integer.toString(request.partitions().size()));
      } catch (RuntimeException thrown) {
        LOG.warn("a fetch goes unobserved", thrown);
        return Observed.NOT;
      }
      InProgress begun = new InProgress(observation);
      begun.guarded(observation::start);
      return begun;
    }

    private static final class InProgress extends Observed {
      private final Observation observation;

      InProgress(Observation observation) {
        this.observation = observation;
      }

      @Override
      void ended(String outcome, long bytes, Deadline deadline) {
        guarded(
            () -> {
              observation
                  .lowCardinalityKeyValue("outcome", outcome)
                  .highCardinalityKeyValue("bytes", Long.toString(bytes));
              List<LedgerEntry> ledger = deadline.ledger();
              if (!ledger.isEmpty()) {
                observation.highCardinalityKeyValue(
                    "deadline.ledger",
                    ledger.stream().map(LedgerEntry::toString).collect(Collectors.joining(", ")));
              }
            });
        guarded(observation::stop);
      }

      /** Whoever watches must not break what it watches. */
      void guarded(Runnable tell) {
        try {
          tell.run();
        } catch (RuntimeException thrown) {
          LOG.warn("a handler of observations threw at a fetch", thrown);
        }
      }
    }
  }
}
