package dev.timebound.deadline;

import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.Scannable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/**
 * What bounds a pipeline: a fixed deadline, or a budget that starts at each subscription. One of
 * the two is set.
 */
record Bound(
    @Nullable Deadline fixed,
    @Nullable Duration budget,
    @Nullable Scheduler scheduler,
    @Nullable String operation) {

  static Bound of(Deadline fixed, @Nullable String operation) {
    return new Bound(fixed, null, null, operation);
  }

  static Bound within(Duration budget, @Nullable Scheduler scheduler, @Nullable String operation) {
    return new Bound(null, budget, scheduler, operation);
  }

  <T> Publisher<T> apply(Publisher<T> source) {
    return source instanceof Mono<T> mono
        ? new MonoDeadline<>(mono, this)
        : new FluxDeadline<>(Flux.from(source), this);
  }

  /** The deadline to enforce under an outer one: the outer one itself where it is not later. */
  Deadline under(Deadline outer) {
    if (fixed != null) {
      return Deadlines.lesser(outer, fixed);
    }
    Duration given = budget == null ? Duration.ZERO : budget;
    return scheduler == null
        ? outer.within(given)
        : Deadlines.lesser(outer, Deadline.after(given, scheduler));
  }

  DeadlineExceededException exceeded(Scannable source, Deadline deadline) {
    return new DeadlineExceededException(name(operation, source), deadline);
  }

  /** The given name, or the one that the pipeline has for itself. */
  static String name(@Nullable String operation, Scannable source) {
    return operation == null ? source.name() : operation;
  }
}
