package dev.timebound.fetch;

import java.util.Locale;

/** A read that was given up: what it was, and how far it had come (FE-23). */
record Abandoned(Operation operation, Stage stage) {
  enum Operation {
    FETCH,
    OFFSET_STAGE,
    LIST_OFFSETS;

    final String tag = name().toLowerCase(Locale.ROOT);
  }

  enum Stage {
    /** In storage. */
    READING,
    /** For a permit. */
    WAITING,
    NOT_STARTED;

    final String tag = name().toLowerCase(Locale.ROOT);
  }
}
