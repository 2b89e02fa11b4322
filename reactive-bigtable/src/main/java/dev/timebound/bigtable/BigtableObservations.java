package dev.timebound.bigtable;

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
 * Tells an observation registry of each call. Without one, or with one that observes nothing, it
 * makes nothing.
 */
abstract class BigtableObservations {
  private static final BigtableObservations NONE = new BigtableObservations() {};

  static BigtableObservations of(@Nullable ObservationRegistry registry) {
    return registry == null || registry.isNoop() ? NONE : new InRegistry(registry);
  }

  /**
   * A call begins.
   *
   * @param resource the full name of the table, or of the instance
   * @param context the subscriber's: the parent observation is in it, where there is one
   */
  Observed begin(ObservedCall call, String resource, ContextView context) {
    return Observed.NOT;
  }

  /** One call under observation. */
  abstract static class Observed {
    private static final Observed NOT = new Observed() {};

    /**
     * It has ended: called once.
     *
     * @param failure null where it succeeded or was cancelled
     * @param channel the last attempt's, null where it had none
     */
    void ended(
        String outcome,
        @Nullable Throwable failure,
        int attempts,
        @Nullable String channel,
        Deadline deadline) {}
  }

  /** The only place that touches Micrometer's types at run time: it is optional. */
  private static final class InRegistry extends BigtableObservations {
    private static final Logger LOG = LoggerFactory.getLogger(BigtableClient.class);

    /** Where Micrometer's own thread-local accessor keeps it. */
    private static final String PARENT = "micrometer.observation";

    private static final String TABLES = "/tables/";

    private final ObservationRegistry registry;

    InRegistry(ObservationRegistry registry) {
      this.registry = registry;
    }

    @Override
    Observed begin(ObservedCall call, String resource, ContextView context) {
      Observation observation;
      try {
        observation =
            Observation.createNotStarted(call.observation, registry)
                .contextualName(call.contextualName)
                .lowCardinalityKeyValue("method", call.method);
        if (observation.isNoop()) {
          return Observed.NOT;
        }
        if (context.getOrDefault(PARENT, null) instanceof Observation parent) {
          observation.parentObservation(parent);
        }
        int table = resource.indexOf(TABLES);
        if (table >= 0) {
          observation.highCardinalityKeyValue("table", resource.substring(table + TABLES.length()));
        }
      } catch (RuntimeException thrown) {
        LOG.warn("{} goes unobserved", call.method, thrown);
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
      void ended(
          String outcome,
          @Nullable Throwable failure,
          int attempts,
          @Nullable String channel,
          Deadline deadline) {
        guarded(
            () -> {
              observation
                  .lowCardinalityKeyValue("outcome", outcome)
                  .highCardinalityKeyValue("attempts", Integer.toString(attempts));
              if (channel != null) {
                observation.highCardinalityKeyValue("channel", channel);
              }
              List<LedgerEntry> ledger = deadline.ledger();
              if (!ledger.isEmpty()) {
                observation.highCardinalityKeyValue(
                    "deadline.ledger",
                    ledger.stream().map(LedgerEntry::toString).collect(Collectors.joining(", ")));
              }
              if (failure != null) {
                observation.error(failure);
              }
            });
        guarded(observation::stop);
      }

      /** Whoever watches must not break what it watches. */
      void guarded(Runnable tell) {
        try {
          tell.run();
        } catch (RuntimeException thrown) {
          LOG.warn(
              "a handler of observations threw at {}", observation.getContext().getName(), thrown);
        }
      }
    }
  }
}
