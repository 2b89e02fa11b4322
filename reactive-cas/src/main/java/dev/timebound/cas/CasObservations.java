package dev.timebound.cas;

import dev.timebound.deadline.CallObservation;
import dev.timebound.deadline.Deadline;
import io.micrometer.observation.ObservationRegistry;
import org.jspecify.annotations.Nullable;
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
     * @param attempts 0 where they are not counted
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
    private final ObservationRegistry registry;
    private final String ring;

    InRegistry(ObservationRegistry registry, String ring) {
      this.registry = registry;
      this.ring = ring;
    }

    @Override
    Observed begin(String operation, @Nullable Digest blob, ContextView context) {
      CallObservation begun =
          CallObservation.start(
              registry,
              "timebound." + operation,
              context,
              observation -> {
                observation
                    .contextualName(operation.replace('.', ' '))
                    .lowCardinalityKeyValue("ring", ring);
                if (blob != null) {
                  observation.highCardinalityKeyValue("digest", blob.toString());
                }
              });
      return begun == null ? Observed.NOT : new InProgress(begun);
    }

    private static final class InProgress extends Observed {
      private final CallObservation observation;

      InProgress(CallObservation observation) {
        this.observation = observation;
      }

      @Override
      void ended(
          String outcome,
          @Nullable Throwable failure,
          int attempts,
          @Nullable String shard,
          Deadline deadline) {
        observation.stop(
            deadline,
            failure,
            end -> {
              end.lowCardinalityKeyValue("outcome", outcome);
              if (attempts > 0) {
                end.highCardinalityKeyValue("attempts", Integer.toString(attempts));
              }
              if (shard != null) {
                end.lowCardinalityKeyValue("shard", shard);
              }
            });
      }
    }
  }
}
