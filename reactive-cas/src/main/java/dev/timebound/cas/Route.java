package dev.timebound.cas;

import dev.timebound.cas.ShardStatuses.Verdict;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.RetryBudget;
import dev.timebound.health.Candidates;
import dev.timebound.health.Claim;
import io.github.resilience4j.core.IntervalFunction;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Where one request goes next: the shards in ring order, each at most once (CAS-21), then the last
 * one again a few times (CAS-4); and which error it ends with. One thread at a time.
 *
 * <p>The home's word is final: what it has not, is missing. A neighbour's is not (CAS-23).
 */
final class Route {
  private static final IntervalFunction BACKOFF = RingSettings.retryBackoff();

  private final RingShards shards;
  private final List<Shard> order;
  private final Deadline caller;
  private final RetryBudget budget;
  private final int retries;

  private Candidates<Shard> candidates;

  /** Made and not taken yet. */
  private final AtomicReference<@Nullable Claim<Shard>> next = new AtomicReference<>();

  private volatile boolean abandoned;
  private int given;
  private int retried;

  /** Since the candidates were begun. */
  private boolean progressed;

  /** The connectivity error of the home. */
  private @Nullable Throwable homeFailure;

  Route(RingShards shards, List<Shard> order, Deadline caller, RingSettings settings) {
    this.shards = shards;
    this.order = order;
    this.caller = caller;
    this.budget = settings.retryBudget();
    this.retries = settings.retries();
    this.candidates = shards.claims(order);
    budget.requested();
    advance();
  }

  /** The caller has given up: a claim that was made for it is let go. From any thread. */
  void abandon() {
    abandoned = true;
    Claim<Shard> unused = take();
    if (unused != null) {
      unused.cancelled();
    }
  }

  /** The claim of the next attempt; null where there is none. */
  @Nullable Claim<Shard> take() {
    return next.getAndSet(null);
  }

  /** A claim beside the route, for what is learned of a shard after its claim has ended. */
  @Nullable Claim<Shard> beside(Shard shard) {
    return candidates.again(shard);
  }

  /** Shards that may still be tried, the one just taken included. */
  int left() {
    return Math.max(1, order.size() - given + 1);
  }

  boolean isHome(Shard shard) {
    return shard == order.get(0);
  }

  /** Bytes came in: attempts count anew. */
  void progress() {
    retried = 0;
    progressed = true;
  }

  /** What follows from a failed attempt. */
  sealed interface Step {
    /** Another shard, at once. */
    record Move(Shard to) implements Step {}

    /** A retry after a pause. */
    record Again(long nanos) implements Step {}

    record End(Throwable failure) implements Step {}
  }

  /**
   * After an attempt on this shard failed; the claim of the next one is at hand where it goes on.
   */
  Step after(Shard shard, Throwable failure) {
    Verdict verdict = ShardStatuses.of(failure);
    switch (verdict) {
      case CALLER:
        return new Step.End(failure);
      case HERE, CONNECTION:
        if (isHome(shard)) {
          homeFailure = failure;
        }
        return moveOr(shard, failure);
      case OVERLOAD, TRANSIENT:
        return again(shard, failure);
      case MISSING, UNAUTHENTICATED, FINAL:
        break;
    }
    boolean isLast = isHome(shard) || failure instanceof DataLossException;
    return isLast ? new Step.End(failure) : move(failure);
  }

  /** The same shard once more, at once, which is no retry. */
  void sameAgain(Shard shard) {
    give(candidates.again(shard));
  }

  private void give(@Nullable Claim<Shard> claim) {
    next.set(claim);
    if (abandoned) {
      abandon();
    }
  }

  private Step moveOr(Shard shard, Throwable failure) {
    Shard to = advance();
    return to == null ? again(shard, failure) : new Step.Move(to);
  }

  private Step move(Throwable failure) {
    Shard to = advance();
    return to == null ? end(failure) : new Step.Move(to);
  }

  private Step again(Shard shard, Throwable failure) {
    if (retried >= retries) {
      return isHome(shard) ? end(failure) : move(failure);
    }
    long pause = TimeUnit.MILLISECONDS.toNanos(BACKOFF.apply(retried + 1));
    if (caller.remainingNanos() <= pause || !budget.tryTake()) {
      return end(failure);
    }
    retried++;
    if (progressed) {
      // Bytes have come since: every shard may be asked again.
      progressed = false;
      candidates = shards.claims(order);
      given = 0;
      advance();
    } else {
      sameAgain(shard);
    }
    return new Step.Again(pause);
  }

  /** CAS-23: the home's own error is what the caller sees, where it has one. */
  private Step end(Throwable failure) {
    Throwable seen = homeFailure == null ? failure : homeFailure;
    if (seen != failure) {
      seen.addSuppressed(failure);
    }
    return new Step.End(seen);
  }

  private @Nullable Shard advance() {
    Claim<Shard> claim = candidates.next();
    if (claim == null) {
      return null;
    }
    given++;
    give(claim);
    return claim.member();
  }
}
