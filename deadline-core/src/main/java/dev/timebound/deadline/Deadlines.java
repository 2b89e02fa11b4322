package dev.timebound.deadline;

import reactor.util.context.Context;
import reactor.util.context.ContextView;

/** The operators that put a {@link Deadline} into the Reactor Context, read it and enforce it. */
public final class Deadlines {
  private Deadlines() {}

  /** The deadline in the Context; {@link Deadline#none()} where there is none. */
  public static Deadline current(ContextView context) {
    Deadline none = Deadline.none();
    Deadline found = context.getOrDefault(Deadline.class, none);
    return found == null ? none : found;
  }

  /** A Context that carries the deadline. */
  static Context put(Context context, Deadline deadline) {
    return context.put(Deadline.class, deadline);
  }
}
