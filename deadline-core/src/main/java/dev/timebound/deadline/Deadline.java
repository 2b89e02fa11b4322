package dev.timebound.deadline;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * A point on a monotonic clock by which an answer is due (DL-1). It travels with a request through
 * the Reactor Context ({@link Deadlines}) and bounds every hop, where a timeout would be spent anew
 * by each.
 *
 * <p>The clock is {@link Scheduler#now(TimeUnit) now(NANOSECONDS)} of the {@link #scheduler()} the
 * deadline was made on; changes of the wall clock do not move it, and under Reactor's virtual time
 * it follows the virtual clock. Two deadlines on different clocks are compared by what is left.
 *
 * <p>A child ({@link #within}, {@link #share}, {@link #before}) never outlives its parent and
 * charges the same ledger (DL-2, DL-5).
 *
 * <p>Edge values: a duration beyond 100 years counts as 100 years, in both directions; a zero or
 * negative duration gives a deadline that has passed already. The instant is immutable, and all
 * methods may be called from any thread.
 */
public final class Deadline {
  /** Far enough for any request, and small enough that sums and differences never overflow. */
  static final long MAX_NANOS = TimeUnit.DAYS.toNanos(36_500);

  private static final Deadline NONE = new Deadline(0, Long.MAX_VALUE, null, null, null);
  private static final VarHandle LEDGER;
  private static final VarHandle TIMER;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      LEDGER = lookup.findVarHandle(Deadline.class, "ledger", Ledger.class);
      TIMER = lookup.findVarHandle(Deadline.class, "timer", SharedTimer.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private final long at;
  private final long budget;

  /** Null only for {@link #NONE}. */
  private final @Nullable Scheduler scheduler;

  /** The root whose ledger this one shares; null where this is the root. */
  private final @Nullable Deadline root;

  /** An outer deadline of another root, whose ledger is charged as well. */
  private final @Nullable Deadline outer;

  /** Of a root only, made by the first charge. */
  private volatile @Nullable Ledger ledger;

  /** Made by the first operator that enforces this deadline. */
  private volatile @Nullable SharedTimer timer;

  private Deadline(
      long at,
      long budget,
      @Nullable Scheduler scheduler,
      @Nullable Deadline root,
      @Nullable Deadline outer) {
    this.at = at;
    this.budget = budget;
    this.scheduler = scheduler;
    this.root = root;
    this.outer = outer;
  }

  /**
   * The point {@code budget} from now on the clock of {@link Schedulers#parallel()}. Zero or
   * negative: it has passed already. More than 100 years: 100 years.
   */
  public static Deadline after(Duration budget) {
    return after(budget, Schedulers.parallel());
  }

  /**
   * As {@link #after(Duration)} on the clock of another scheduler, which also runs the timers of
   * the operators that enforce it; it must be able to run delayed tasks.
   */
  public static Deadline after(Duration budget, Scheduler scheduler) {
    long nanos = nanos(budget);
    return new Deadline(scheduler.now(TimeUnit.NANOSECONDS) + nanos, nanos, scheduler, null, null);
  }

  /** The deadline that never passes, on no clock; it has no ledger, and a charge to it is lost. */
  public static Deadline none() {
    return NONE;
  }

  /** Whether this is {@link #none()}. */
  public boolean isNone() {
    return scheduler == null;
  }

  /**
   * What is left, never more than 100 years; negative once it has passed, by how long ago. {@code
   * Duration.ofNanos(Long.MAX_VALUE)} for {@link #none()}.
   */
  public Duration remaining() {
    return Duration.ofNanos(remainingNanos());
  }

  /**
   * Nanoseconds left; negative once it has passed, by how long ago; {@link Long#MAX_VALUE} for
   * {@link #none()}.
   */
  public long remainingNanos() {
    return scheduler == null ? Long.MAX_VALUE : at - scheduler.now(TimeUnit.NANOSECONDS);
  }

  /** Whether nothing is left: true from the very instant on; never for {@link #none()}. */
  public boolean isExpired() {
    return remainingNanos() <= 0;
  }

  /**
   * Where the time comes from and the timers run; {@link Schedulers#parallel()} for {@link
   * #none()}.
   */
  public Scheduler scheduler() {
    return scheduler == null ? Schedulers.parallel() : scheduler;
  }

  /**
   * The one of the two that passes first; this one where both pass at the same instant. On
   * different clocks the one with less left at the moment of the call.
   */
  public Deadline earlier(Deadline other) {
    if (other.scheduler == null || other == this) {
      return this;
    }
    if (scheduler == null) {
      return other;
    }
    long ahead =
        scheduler == other.scheduler
            ? other.at - at
            : Long.compare(other.remainingNanos(), remainingNanos());
    return ahead < 0 ? other : this;
  }

  /**
   * A child that passes {@code budget} from now, or this one where it passes sooner or then (DL-2).
   * Zero or negative: the child has passed already. Of {@link #none()}: {@link #after(Duration)}.
   */
  public Deadline within(Duration budget) {
    if (scheduler == null) {
      return after(budget);
    }
    return childIn(nanos(budget), scheduler);
  }

  /**
   * A child for the next of {@code consumersLeft} who are served one after the other: half of what
   * is left, all of it for the last (DL-2). This one where it has passed, and for {@link #none()}.
   *
   * @throws IllegalArgumentException where consumersLeft is below 1
   */
  public Deadline share(int consumersLeft) {
    if (consumersLeft < 1) {
      throw new IllegalArgumentException("consumersLeft: " + consumersLeft + " (expected: >= 1)");
    }
    if (scheduler == null || consumersLeft == 1) {
      return this;
    }
    long left = remainingNanos();
    return left <= 0 ? this : childIn(left / 2, scheduler);
  }

  /**
   * A child that passes {@code margin} earlier than this one, which leaves the margin for what
   * comes after (DL-2). A zero or negative margin gives this one; a margin greater than what is
   * left gives a child that has passed already. {@link #none()} stays none.
   */
  public Deadline before(Duration margin) {
    long nanos = nanos(margin);
    if (scheduler == null || nanos <= 0) {
      return this;
    }
    return childIn(remainingNanos() - nanos, scheduler);
  }

  /**
   * Charges what a step of the request took to the ledger that travels with this deadline, its
   * parents and its children (DL-5), such as {@code ("bigtable.read-rows attempt 2", 12_000_000)}.
   * A negative time counts as zero. {@link #none()} keeps nothing.
   */
  public void charge(String step, long nanos) {
    Objects.requireNonNull(step, "step");
    if (scheduler == null) {
      return;
    }
    Deadline owner = root == null ? this : root;
    owner.ownLedger().add(step, Math.max(0, nanos));
    if (outer != null) {
      outer.charge(step, nanos);
    }
  }

  /** As {@link #charge(String, long)}. */
  public void charge(String step, Duration spent) {
    charge(step, nanos(spent));
  }

  /**
   * What was charged so far, in order, at most {@value Ledger#CAPACITY} entries: where there were
   * more, the oldest are summed in the first entry. A copy; empty where nothing was charged.
   */
  public List<LedgerEntry> ledger() {
    Deadline owner = root == null ? this : root;
    Ledger charged = owner.ledger;
    return charged == null ? List.of() : charged.entries();
  }

  /** Whole time given when this deadline was made; Long.MAX_VALUE for none. */
  long budgetNanos() {
    return budget;
  }

  /** This deadline, charging the outer one's ledger too where that is another one. */
  Deadline chargingAlso(Deadline other) {
    boolean sameLedger = (root == null ? this : root) == (other.root == null ? other : other.root);
    if (scheduler == null || other.isNone() || sameLedger) {
      return this;
    }
    return new Deadline(at, budget, scheduler, root == null ? this : root, other);
  }

  /** The one timer of all operators that enforce this very deadline (DL-9). */
  SharedTimer timer() {
    SharedTimer present = timer;
    if (present != null) {
      return present;
    }
    SharedTimer made = new SharedTimer(this);
    return TIMER.compareAndSet(this, null, made) ? made : Objects.requireNonNull(timer);
  }

  @Override
  public String toString() {
    if (scheduler == null) {
      return "Deadline[none]";
    }
    long left = remainingNanos();
    String of = " of " + Durations.text(budget) + "]";
    return left > 0
        ? "Deadline[" + Durations.text(left) + " left" + of
        : "Deadline[passed " + Durations.text(-left) + " ago" + of;
  }

  private Deadline childIn(long nanos, Scheduler clock) {
    long now = clock.now(TimeUnit.NANOSECONDS);
    long bounded = Math.max(nanos, -MAX_NANOS);
    long instant = now + bounded;
    if (instant - at >= 0) {
      return this;
    }
    return new Deadline(instant, bounded, clock, root == null ? this : root, outer);
  }

  private Ledger ownLedger() {
    Ledger present = ledger;
    if (present != null) {
      return present;
    }
    Ledger made = new Ledger();
    return LEDGER.compareAndSet(this, null, made) ? made : Objects.requireNonNull(ledger);
  }

  private static long nanos(Duration duration) {
    return Durations.nanos(duration);
  }
}
