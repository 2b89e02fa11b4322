package dev.timebound.fetch;

import dev.timebound.deadline.CallObservation;
import dev.timebound.deadline.Deadline;
import io.micrometer.observation.ObservationRegistry;
import org.jspecify.annotations.Nullable;
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
    private final ObservationRegistry registry;

    InRegistry(ObservationRegistry registry) {
      this.registry = registry;
    }

    @Override
    Observed begin(FetchRequest request, ContextView context) {
      CallObservation begun =
          CallObservation.start(
              registry,
              "timebound.fetch",
              context,
              observation ->
                  observation
                      .contextualName("fetch")
                      .highCardinalityKeyValue(
                          "partitions", Integer.toString(request.partitions().size())));
      return begun == null ? Observed.NOT : new InProgress(begun);
    }

    private static final class InProgress extends Observed {
      private final CallObservation observation;

      InProgress(CallObservation observation) {
        this.observation = observation;
      }

      @Override
      void ended(String outcome, long bytes, Deadline deadline) {
        observation.stop(
            deadline,
            null,
            end ->
                end.lowCardinalityKeyValue("outcome", outcome)
                    .highCardinalityKeyValue("bytes", Long.toString(bytes)));
      }
    }
  }
}
