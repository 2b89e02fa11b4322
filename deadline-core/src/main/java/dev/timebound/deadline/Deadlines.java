package dev.timebound.deadline;

import java.util.function.Function;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/** The operators that put a {@link Deadline} into the Reactor Context, read it and enforce it. */
public final class Deadlines {
  private Deadlines() {}

  /** The deadline in the Context; {@link Deadline#none()} where there is none (DL-3). */
  public static Deadline current(ContextView context) {
    Deadline none = Deadline.none();
    Deadline found = context.getOrDefault(Deadline.class, none);
    return found == null ? none : found;
  }

  /**
   * A Context that carries the lesser of the deadline and the one already there (DL-3): an inner
   * bound shortens and never lengthens. It enforces nothing: that is what {@code within} and {@code
   * of} are for.
   */
  public static Context put(Context context, Deadline deadline) {
    Deadline present = current(context);
    Deadline lesser = lesser(present, deadline);
    return lesser == present ? context : context.put(Deadline.class, lesser);
  }

  /**
   * A Mono that reads the deadline once, at each subscription, such as {@code Deadlines.defer(d ->
   * call(d.remaining()))}; {@link Deadline#none()} where the Context has none (DL-3).
   */
  public static <T> Mono<T> defer(Function<? super Deadline, ? extends Mono<? extends T>> call) {
    return Mono.deferContextual(context -> call.apply(current(context)));
  }

  /** {@link #defer} for a Flux. */
  public static <T> Flux<T> deferMany(Function<? super Deadline, ? extends Publisher<T>> call) {
    return Flux.deferContextual(context -> call.apply(current(context)));
  }

  /** The one to be enforced under an outer one; the outer one where both pass at once (DL-9). */
  static Deadline lesser(Deadline outer, Deadline inner) {
    Deadline lesser = outer.earlier(inner);
    return lesser == outer ? outer : lesser.chargingAlso(outer);
  }
}
