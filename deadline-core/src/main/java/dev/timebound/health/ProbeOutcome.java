package dev.timebound.health;

/** How a probe ended, the engine's own limit included. */
enum ProbeOutcome {
  ANSWERED,
  FAILED,
  TIMED_OUT,
  NOT_SENT;

  static ProbeOutcome of(ProbeAnswer answer) {
    return switch (answer) {
      case ANSWERED -> ANSWERED;
      case CONNECTION_FAILED -> FAILED;
      case NOT_SENT -> NOT_SENT;
    };
  }
}
