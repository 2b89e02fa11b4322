package dev.timebound.cas;

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
abstract class CasObservations {
  private static final CasObservations NONE = new CasObservations() {};

  static CasObservations of(@Nullable ObservationRegistry registry, String ring) {
    return registry == null || registry.isNoop() ? NONE : new InRegistry(registry, ring);
  }

  /**
   * A call begins.
   *
   * @param operation as the deadline's ledger names it
   * @param blob null where it is about more than one
   * @param context the subscriber's: the parent observation is in it, where there is one
   */
  Observed begin(String operation, @Nullable Digest blob, ContextView context) {
    return Observed.NOT;
  }

  /** One call under observation. */
  abstract static class Observed {
    static final Observed NOT = new Observed() {};

    /**
     * It has ended: called once.
     *
     * @param failure null where it succeeded or was cancelled
     * @param shard the last attempt's, null where it had none
     */
    void ended(
        String outcome,
        @Nullable Throwable failure,
        int attempts,
        @Nullable String shard,
        Deadline deadline) {}
  }

  /** The only place that touches Micrometer's types at run time: it is optional. */
  private static final class InRegistry extends CasObservations {
    private static final Logger LOG = LoggerFactory.getLogger(CasRing.class);

    /** Where Micrometer's own thread-local accessor keeps it. */
    private static final String PARENT = "micrometer.observation";

    private final ObservationRegistry registry;
    private final String ring;

    InRegistry(ObservationRegistry registry, String ring) {
      this.registry = registry;
      this.ring = ring;
    }

    @Override
    Observed begin(String operation, @Nullable Digest blob, ContextView context) {
      Observation observation;
      try {
        observation =
            Observation.createNotStarted("timebound." + operation, registry)
                .contextualName(operation.replace('.', ' '))
                .lowCardinalityKeyValue("ring", ring);
        if (observation.isNoop()) {
          return Observed.NOT;
        }
        if (context.getOrDefault(PARENT, null) instanceof Observation parent) {
          observation.parentObservation(parent);
        }
        if (blob != null) {
          observation.highCardinalityKeyValue("digest", blob.toString());
        }
      } catch (RuntimeException thrown) {
        LOG.warn("{} goes unobserved", operation, thrown);
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
          @Nullable String shard,
          Deadline deadline) {
        guarded(
            () -> {
              observation
                  .lowCardinalityKeyValue("outcome", outcome)
                  .highCardinalityKeyValue("attempts", Integer.toString(attempts));
              if (shard != null) {
                observation.lowCardinalityKeyValue("shard", shard);
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
