package dev.timebound.fetch;

import org.jspecify.annotations.Nullable;
import reactor.util.context.ContextView;

/** How far a call into a store has come, told through its Context for {@code stage} of FE-23. */
final class ReadTrace {
  private volatile boolean waiting;

  static @Nullable ReadTrace in(ContextView context) {
    return context.getOrDefault(ReadTrace.class, null);
  }

  void waiting(boolean now) {
    waiting = now;
  }

  Abandoned.Stage stage() {
    return waiting ? Abandoned.Stage.WAITING : Abandoned.Stage.READING;
  }
}
