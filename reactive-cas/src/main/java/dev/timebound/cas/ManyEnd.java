package dev.timebound.cas;

import dev.timebound.cas.CasObservations.Observed;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import org.jspecify.annotations.Nullable;
import reactor.util.context.ContextView;

/** How a call about many blobs ended: an observation, and nothing of each blob. */
final class ManyEnd<T> extends CallEnd<T> {
  private final Deadline caller;
  private final Observed observed;

  ManyEnd(String operation, CasObservations observations, ContextView context) {
    this(operation, observations, context, Deadlines.current(context));
  }

  private ManyEnd(
      String operation, CasObservations observations, ContextView context, Deadline caller) {
    super(operation, caller);
    this.caller = caller;
    this.observed = observations.begin(operation, null, context);
  }

  @Override
  void tell(String outcome, @Nullable Throwable failure) {
    observed.ended(outcome, failure, 0, null, caller);
  }
}
