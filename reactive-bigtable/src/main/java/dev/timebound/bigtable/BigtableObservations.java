package dev.timebound.bigtable;

import dev.timebound.deadline.CallObservation;
import dev.timebound.deadline.Deadline;
import io.micrometer.observation.ObservationRegistry;
import org.jspecify.annotations.Nullable;
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
    private static final String TABLES = "/tables/";

    private final ObservationRegistry registry;

    InRegistry(ObservationRegistry registry) {
      this.registry = registry;
    }

    @Override
    Observed begin(ObservedCall call, String resource, ContextView context) {
      CallObservation begun =
          CallObservation.start(
              registry,
              call.observation,
              context,
              observation -> {
                observation
                    .contextualName(call.contextualName)
                    .lowCardinalityKeyValue("method", call.method);
                int table = resource.indexOf(TABLES);
                if (table >= 0) {
                  observation.highCardinalityKeyValue(
                      "table", resource.substring(table + TABLES.length()));
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
          @Nullable String channel,
          Deadline deadline) {
        observation.stop(
            deadline,
            failure,
            end -> {
              end.lowCardinalityKeyValue("outcome", outcome)
                  .highCardinalityKeyValue("attempts", Integer.toString(attempts));
              if (channel != null) {
                end.highCardinalityKeyValue("channel", channel);
              }
            });
      }
    }
  }
}
