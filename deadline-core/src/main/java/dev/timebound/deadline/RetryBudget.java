package dev.timebound.deadline;

import io.micrometer.core.instrument.MeterRegistry;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * How many calls a service may make on top of its requests, as retries and hedges (DL-11). Where a
 * backend browns out, each caller alone thinks that trying again helps; together they multiply its
 * load. One budget, shared by all that call the backend, bounds that: a share of the requests, and
 * so many a second, so that a quiet service can still retry.
 *
 * <p>In any span of {@code t} seconds with {@code n} requests it grants no more than {@code saved +
 * share * n + perSecond * (t + 1)}: what the requests of good times earned is kept, up to {@code
 * saved}; what a second was not asked for is lost with the second.
 *
 * <p>Make one for each backend and hand it to {@link RetryWithin#budget} and {@link
 * Deadlines#hedge}. Each of them counts the subscriptions that go through it as requests, so a
 * request that passes two operators of one budget counts twice: give each its own where that is too
 * much. Code that retries on its own calls {@link #requested()} once for each request and asks
 * {@link #tryTake()} before each call on top.
 *
 * <p>Lock-free and safe from any thread; a request costs one read where the savings are full, else
 * one compare-and-set.
 */
public final class RetryBudget {
  /** {@value}: the default of {@link Builder#share}. */
  public static final double DEFAULT_SHARE = 0.2;

  /** {@value}: the default of {@link Builder#perSecond}. */
  public static final int DEFAULT_PER_SECOND = 10;

  /** {@value}: the default of {@link Builder#saved}. */
  public static final int DEFAULT_SAVED = 100;

  /** What one call costs, in the unit of {@link #earned}. */
  private static final long CALL = 1_000_000;

  private static final VarHandle EARNED;
  private static final VarHandle PAID_UNTIL;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      EARNED = lookup.findVarHandle(RetryBudget.class, "earned", long.class);
      PAID_UNTIL = lookup.findVarHandle(RetryBudget.class, "paidUntil", long.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private final @Nullable Scheduler scheduler;
  private final long earning;
  private final long mostEarned;

  /** Nanoseconds that one call a second's allowance takes; 0 where there is none. */
  private final long interval;

  /** Nanoseconds that the allowance may be ahead of the clock: a second's worth of calls. */
  private final long ahead;

  private final LongAdder granted = new LongAdder();
  private final LongAdder refused = new LongAdder();
  private final LongAdder hedges = new LongAdder();
  private final LongAdder hedgesWon = new LongAdder();
  private final LongAdder hedgesLost = new LongAdder();

  /** What the requests have earned and nobody has taken yet. */
  private volatile long earned;

  /** The instant by which the clock has made up for what was taken of the allowance. */
  private volatile long paidUntil;

  private RetryBudget(Builder settings) {
    this.scheduler = settings.scheduler;
    this.earning = Math.round(settings.share * CALL);
    this.mostEarned = settings.saved * CALL;
    this.interval = settings.perSecond == 0 ? 0 : TimeUnit.SECONDS.toNanos(1) / settings.perSecond;
    this.ahead = interval * settings.perSecond;
    this.paidUntil = now();
  }

  /** With the defaults: {@value #DEFAULT_SHARE} of the requests, and 10 a second. */
  public static RetryBudget create() {
    return builder().build();
  }

  /** For other settings than the defaults. */
  public static Builder builder() {
    return new Builder();
  }

  /** A request has come: it earns its share. To be called once for each, whatever becomes of it. */
  public void requested() {
    long before;
    do {
      before = earned;
      if (before >= mostEarned) {
        return;
      }
    } while (!EARNED.compareAndSet(this, before, Math.min(mostEarned, before + earning)));
  }

  /** Takes one call on top of the requests; false where the budget has none left now. */
  public boolean tryTake() {
    // the second's allowance first: it is lost with the second, while what was earned is kept
    boolean taken = takeAllowed() || takeEarned();
    (taken ? granted : refused).increment();
    return taken;
  }

  /** Calls that were granted so far. */
  public long granted() {
    return granted.sum();
  }

  /** Calls that were refused so far; each a retry or a hedge that was not made. */
  public long refused() {
    return refused.sum();
  }

  /**
   * Second calls that {@link Deadlines#hedge} made so far. Of these some have {@linkplain
   * #hedgesWon() won}, some {@linkplain #hedgesLost() lost}; the rest run, or nobody answered.
   */
  public long hedges() {
    return hedges.sum();
  }

  /** Hedges so far whose second call was the first to answer. */
  public long hedgesWon() {
    return hedgesWon.sum();
  }

  /** Hedges so far whose first call answered all the same: the second was made in vain. */
  public long hedgesLost() {
    return hedgesLost.sum();
  }

  /** A second call is made. */
  void hedged() {
    hedges.increment();
  }

  void hedgeEnded(boolean won) {
    (won ? hedgesWon : hedgesLost).increment();
  }

  private boolean takeEarned() {
    long before;
    do {
      before = earned;
      if (before < CALL) {
        return false;
      }
    } while (!EARNED.compareAndSet(this, before, before - CALL));
    return true;
  }

  private boolean takeAllowed() {
    if (interval == 0) {
      return false;
    }
    while (true) {
      // in this order: read before what others have paid since, the clock would seem another one
      long before = paidUntil;
      long now = now();
      long owed = before - now;
      if (owed < 0 || owed > ahead) {
        owed = 0; // nothing was taken lately; or the clock is another one, as in a test
      }
      if (owed > ahead - interval) {
        return false;
      }
      if (PAID_UNTIL.compareAndSet(this, before, now + owed + interval)) {
        return true;
      }
    }
  }

  private long now() {
    return (scheduler == null ? Schedulers.parallel() : scheduler).now(TimeUnit.NANOSECONDS);
  }

  /** As in {@code RetryBudget[granted=3, refused=1, hedges=2]}. */
  @Override
  public String toString() {
    return "RetryBudget[granted="
        + granted()
        + ", refused="
        + refused()
        + ", hedges="
        + hedges()
        + "]";
  }

  /** The settings of a {@link RetryBudget}; each is checked at once. Not thread-safe. */
  public static final class Builder {
    private double share = DEFAULT_SHARE;
    private int perSecond = DEFAULT_PER_SECOND;
    private int saved = DEFAULT_SAVED;
    private @Nullable Scheduler scheduler;
    private @Nullable MeterRegistry registry;
    private String name = "";

    private Builder() {}

    /**
     * Calls that a request earns, {@value RetryBudget#DEFAULT_SHARE} by default: from 0 (none) to 1
     * (a second call for each).
     */
    public Builder share(double share) {
      if (!(share >= 0 && share <= 1)) {
        throw new IllegalArgumentException("share: " + share + " (expected: 0 to 1)");
      }
      this.share = share;
      return this;
    }

    /**
     * Calls a second that are granted whatever the requests are, {@value
     * RetryBudget#DEFAULT_PER_SECOND} by default: from 0 to 1,000,000. They may come all at once.
     */
    public Builder perSecond(int perSecond) {
      this.perSecond = inRange("perSecond", perSecond);
      return this;
    }

    /**
     * How many calls at most are kept of what the requests earned, {@value
     * RetryBudget#DEFAULT_SAVED} by default: from 0 to 1,000,000. A new budget has none saved. With
     * 0 the share earns nothing.
     */
    public Builder saved(int saved) {
      this.saved = inRange("saved", saved);
      return this;
    }

    /** Whose clock counts the seconds; {@link Schedulers#parallel()}'s by default. */
    public Builder scheduler(Scheduler scheduler) {
      this.scheduler = Objects.requireNonNull(scheduler, "scheduler");
      return this;
    }

    /**
     * Counts what is granted and refused as {@code timebound.retry.budget}, tagged with this name
     * and the outcome, and the hedges as {@code timebound.hedges.sent}, {@code
     * timebound.hedges.won} and {@code timebound.hedges.lost}, tagged with this name. Not counted
     * by default. Two budgets need two names.
     */
    public Builder meters(MeterRegistry registry, String name) {
      this.registry = Objects.requireNonNull(registry, "registry");
      this.name = Objects.requireNonNull(name, "name");
      return this;
    }

    /** A budget with these settings, its meters registered. */
    public RetryBudget build() {
      RetryBudget budget = new RetryBudget(this);
      if (registry != null) {
        BudgetMeters.register(registry, name, budget);
      }
      return budget;
    }

    private static int inRange(String setting, int value) {
      if (value < 0 || value > 1_000_000) {
        throw new IllegalArgumentException(setting + ": " + value + " (expected: 0 to 1000000)");
      }
      return value;
    }
  }
}
