package dev.timebound.deadline;

import java.time.Duration;

/**
 * Downstream has asked and upstream has sent nothing for longer than the gap allowed (DL-6). It
 * tells of one stalled attempt, not of the request's deadline, so trying again may help where time
 * is left: it is no {@link DeadlineExceededException}. It carries no stack trace.
 */
public final class GapTimeoutException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String operation;
  private final long gap;
  private final long received;

  GapTimeoutException(String operation, long gap, long received) {
    super(
        operation
            + ": asked and received nothing for "
            + Durations.text(gap)
            + " (after "
            + received
            + (received == 1 ? " item)" : " items)"),
        null,
        true,
        false);
    this.operation = operation;
    this.gap = gap;
    this.received = received;
  }

  /** Who was silent. */
  public String operation() {
    return operation;
  }

  /** The silence allowed. */
  public Duration gap() {
    return Duration.ofNanos(gap);
  }

  /** Items received before. */
  public long received() {
    return received;
  }
}
