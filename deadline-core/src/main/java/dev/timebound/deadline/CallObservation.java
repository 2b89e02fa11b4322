package dev.timebound.deadline;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.util.context.ContextView;

/**
 * One call of an adapter under observation, with the deadline's ledger at its end. For adapters:
 * whoever only calls them hands a registry to their builders.
 *
 * <p>What a handler of the registry throws is logged and breaks nothing. Thread-safe; of Micrometer
 * it needs {@code micrometer-observation}, which is optional: load it only where that is there.
 */
public final class CallObservation {
  private static final Logger LOG = LoggerFactory.getLogger(CallObservation.class);

  /** Where Micrometer's own thread-local accessor keeps it. */
  private static final String PARENT = "micrometer.observation";

  private final Observation observation;

  private CallObservation(Observation observation) {
    this.observation = observation;
  }

  /**
   * A call begins.
   *
   * @param name of the observation, as in {@code timebound.fetch}
   * @param context the subscriber's: the parent observation is in it, where there is one
   * @param about adds what is known of the call now; not called where nobody observes
   * @return null where nobody observes it
   */
  public static @Nullable CallObservation start(
      ObservationRegistry registry,
      String name,
      ContextView context,
      Consumer<? super Observation> about) {
    Observation observation;
    try {
      observation = Observation.createNotStarted(name, registry);
      if (observation.isNoop()) {
        return null;
      }
      if (context.getOrDefault(PARENT, null) instanceof Observation parent) {
        observation.parentObservation(parent);
      }
      about.accept(observation);
    } catch (RuntimeException thrown) {
      LOG.warn("a call of {} goes unobserved", name, thrown);
      return null;
    }
    CallObservation begun = new CallObservation(observation);
    begun.guarded(observation::start);
    return begun;
  }

  /**
   * It has ended: called once.
   *
   * @param deadline whose ledger is told, where it has one
   * @param failure null where it succeeded or was cancelled
   * @param about adds what is known of the call now
   */
  public void stop(
      Deadline deadline, @Nullable Throwable failure, Consumer<? super Observation> about) {
    guarded(
        () -> {
          about.accept(observation);
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
  private void guarded(Runnable tell) {
    try {
      tell.run();
    } catch (RuntimeException thrown) {
      LOG.warn("a handler of observations threw at {}", observation.getContext().getName(), thrown);
    }
  }
}
