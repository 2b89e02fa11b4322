package dev.timebound.deadline;

import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The deadline of a request passed before its answer came (DL-4). The message names the operation,
 * the budget, and in order where the time went.
 *
 * <p>It is unchecked, so that it can be caught around {@code block()}, and deliberately no {@link
 * java.util.concurrent.TimeoutException}: a retry that matches those tries again, and here no time
 * is left to try. It carries no stack trace: it is made where a timer fired, whose stack tells
 * nothing.
 */
public class DeadlineExceededException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String operation;
  private final long budget;
  private final long elapsed;

  @SuppressWarnings("serial") // List.copyOf and the entries' fields are serializable
  private final List<LedgerEntry> ledger;

  /** Null after a journey through serialization. */
  private final transient @Nullable Deadline deadline;

  /** For an operation that found the deadline passed, or was ended by it. */
  public DeadlineExceededException(String operation, Deadline deadline) {
    this(operation, deadline, null);
  }

  /** As {@link #DeadlineExceededException(String, Deadline)}, with what the backend said of it. */
  public DeadlineExceededException(String operation, Deadline deadline, @Nullable Throwable cause) {
    this(operation, deadline, deadline.remainingNanos(), deadline.ledger(), cause);
  }

  private DeadlineExceededException(
      String operation,
      Deadline deadline,
      long left,
      List<LedgerEntry> ledger,
      @Nullable Throwable cause) {
    this(
        message(operation, deadline.budgetNanos(), elapsed(deadline, left), ledger),
        operation,
        deadline.budgetNanos(),
        elapsed(deadline, left),
        ledger,
        deadline,
        cause);
  }

  DeadlineExceededException(
      String message,
      String operation,
      long budget,
      long elapsed,
      List<LedgerEntry> ledger,
      @Nullable Deadline deadline,
      @Nullable Throwable cause) {
    super(message, cause, true, false);
    this.operation = operation;
    this.budget = budget;
    this.elapsed = elapsed;
    this.ledger = ledger;
    this.deadline = deadline;
  }

  /** Whether it tells of that very deadline. */
  boolean isOf(Deadline other) {
    return deadline == other;
  }

  /** Who was bound by the deadline. */
  public String operation() {
    return operation;
  }

  /** The whole time the deadline gave; zero or negative where it had passed when it was made. */
  public Duration budget() {
    return Duration.ofNanos(budget);
  }

  /** Time from the making of the deadline to this exception. */
  public Duration elapsed() {
    return Duration.ofNanos(elapsed);
  }

  /** Where the time went, in order (DL-5); empty where nothing was charged. */
  public List<LedgerEntry> ledger() {
    return ledger;
  }

  static long elapsed(Deadline deadline, long left) {
    return deadline.isNone() ? 0 : Math.max(0, deadline.budgetNanos() - left);
  }

  static String account(List<LedgerEntry> ledger) {
    return ledger.isEmpty()
        ? ""
        : ledger.stream().map(LedgerEntry::toString).collect(Collectors.joining(", ", ": ", ""));
  }

  private static String message(
      String operation, long budget, long elapsed, List<LedgerEntry> ledger) {
    return operation
        + ": deadline of "
        + Durations.text(budget)
        + " exceeded after "
        + Durations.text(elapsed)
        + account(ledger);
  }
}
