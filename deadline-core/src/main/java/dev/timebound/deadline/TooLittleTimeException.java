package dev.timebound.deadline;

import java.time.Duration;
import java.util.List;

/**
 * The deadline has not passed, but what is left cannot be enough, so nothing was begun (DL-10).
 * Says nothing about whoever would have been asked.
 */
public final class TooLittleTimeException extends DeadlineExceededException {
  private static final long serialVersionUID = 1L;

  private final long left;
  private final long needed;

  /** For an operation that needs more than is left. */
  public TooLittleTimeException(String operation, Deadline deadline, Duration needed) {
    this(
        operation, deadline, deadline.remainingNanos(), Durations.nanos(needed), deadline.ledger());
  }

  private TooLittleTimeException(
      String operation, Deadline deadline, long left, long needed, List<LedgerEntry> ledger) {
    super(
        operation
            + ": "
            + Durations.text(left)
            + " left of "
            + Durations.text(deadline.budgetNanos())
            + ", at least "
            + Durations.text(needed)
            + " needed"
            + account(ledger),
        operation,
        deadline.budgetNanos(),
        elapsed(deadline, left),
        ledger,
        deadline,
        null);
    this.left = left;
    this.needed = needed;
  }

  /** What was left when it was refused. */
  public Duration left() {
    return Duration.ofNanos(left);
  }

  /** What was needed at least. */
  public Duration needed() {
    return Duration.ofNanos(needed);
  }
}
