package dev.timebound.grpc;

import org.jspecify.annotations.Nullable;

/** A failure in one line, with its cause. */
final class Causes {
  private Causes() {}

  /**
   * @param otherwise what to say where nothing is known
   */
  static String text(@Nullable Throwable failure, Object otherwise) {
    if (failure == null) {
      return otherwise.toString();
    }
    Throwable cause = failure.getCause();
    return cause == null ? failure.toString() : failure + ", by " + cause;
  }
}
