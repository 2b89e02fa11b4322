package dev.timebound.deadline;

import java.time.Duration;
import java.util.Objects;
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
  private static final String UNNAMED = "pipeline";

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

  /**
   * An error from upstream, under the name that was given to this bound: whoever notices first that
   * this very deadline has passed (the timer, a call on the wire, an inner bound), it is told the
   * same way. What was noticed becomes the cause.
   */
  Throwable named(Throwable error, Deadline deadline) {
    return operation != null
            && error instanceof DeadlineExceededException late
            && !(late instanceof TooLittleTimeException) // tells what was refused, not who was late
            && late.isOf(deadline)
            && !late.operation().equals(operation)
        ? new DeadlineExceededException(operation, deadline, late)
        : error;
  }

  /**
   * The given name, or the nearest that the pipeline has by {@code name(..)} or from its source.
   * Never one of Reactor's own, which tell a reader nothing.
   */
  static String name(@Nullable String operation, Scannable source) {
    if (operation != null) {
      return operation;
    }
    String own = source.scan(Scannable.Attr.NAME);
    return own != null
        ? own
        : source
            .parents()
            .map(parent -> parent.scan(Scannable.Attr.NAME))
            .filter(Objects::nonNull)
            .findFirst()
            .orElse(UNNAMED);
  }
}
