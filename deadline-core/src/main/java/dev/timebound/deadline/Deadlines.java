package dev.timebound.deadline;

import java.time.Duration;
import java.util.Objects;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.Scannable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/** The operators that put a {@link Deadline} into the Reactor Context, read it and enforce it. */
public final class Deadlines {
  private Deadlines() {}

  /** The deadline in the Context; {@link Deadline#none()} where there is none (DL-3). */
  public static Deadline current(ContextView context) {
    Deadline none = Deadline.none();
    Deadline found = context.getOrDefault(Deadline.class, none);
    return found == null ? none : found;
  }

  /**
   * A Context that carries the lesser of the deadline and the one already there (DL-3): an inner
   * bound shortens and never lengthens. It enforces nothing: that is what {@code within} and {@code
   * of} are for.
   */
  public static Context put(Context context, Deadline deadline) {
    Deadline present = current(context);
    Deadline lesser = lesser(present, deadline);
    return lesser == present ? context : context.put(Deadline.class, lesser);
  }

  /**
   * Bounds a pipeline by a budget that starts at each subscription, such as {@code
   * flux.transform(Deadlines.within(Duration.ofMillis(800)))}. A Mono stays a Mono, a Flux a Flux
   * that is bounded from its subscription to its end.
   *
   * <p>The lesser of this budget and the deadline already in the Context is put into the Context,
   * so everything upstream is bound by it: through flatMap, zip, retry and publishOn (DL-3). A
   * retry downstream of this operator subscribes again and gets a fresh budget; a retry upstream of
   * it shares the one.
   *
   * <p>When it passes, downstream gets {@link DeadlineExceededException}, the work upstream is
   * cancelled and nothing more is subscribed there; a signal that came in time wins (DL-4). The
   * error comes on a thread of the deadline's scheduler. Where the deadline has passed at
   * subscription the error comes at once and nothing is subscribed. Bounds that are nested and pass
   * at the same instant share one timer, and the inner one is told first: a fallback that answers
   * at once still gets through the outer one (DL-9).
   *
   * <p>Zero or negative: each subscription fails. More than 100 years: 100 years. The clock and the
   * timer are those of the deadline in the Context, or of {@link
   * reactor.core.scheduler.Schedulers#parallel()}, read at subscription. The operation named in the
   * error is the pipeline's own {@code name(..)}.
   */
  public static <T> UnaryOperator<Publisher<T>> within(Duration budget) {
    return bounded(Bound.within(Objects.requireNonNull(budget, "budget"), null, null));
  }

  /** As {@link #within(Duration)}, with the name of the operation for the error. */
  public static <T> UnaryOperator<Publisher<T>> within(Duration budget, String operation) {
    Objects.requireNonNull(operation, "operation");
    return bounded(Bound.within(Objects.requireNonNull(budget, "budget"), null, operation));
  }

  /** As {@link #within(Duration, String)}, on the clock and the timers of a given scheduler. */
  public static <T> UnaryOperator<Publisher<T>> within(
      Duration budget, String operation, Scheduler scheduler) {
    Objects.requireNonNull(operation, "operation");
    Objects.requireNonNull(scheduler, "scheduler");
    return bounded(Bound.within(Objects.requireNonNull(budget, "budget"), scheduler, operation));
  }

  /**
   * Bounds a pipeline by a deadline that is the same for every subscription, such as one an edge
   * read from its caller; otherwise as {@link #within(Duration)}: the lesser of it and the one in
   * the Context counts, so {@link Deadline#none()} changes nothing. A retry downstream of it finds
   * the same deadline again.
   */
  public static <T> UnaryOperator<Publisher<T>> of(Deadline deadline) {
    return bounded(Bound.of(Objects.requireNonNull(deadline, "deadline"), null));
  }

  /** As {@link #of(Deadline)}, with the name of the operation for the error. */
  public static <T> UnaryOperator<Publisher<T>> of(Deadline deadline, String operation) {
    Objects.requireNonNull(operation, "operation");
    return bounded(Bound.of(Objects.requireNonNull(deadline, "deadline"), operation));
  }

  /**
   * Refuses early: where less than this is left of the Context's deadline, a subscription fails
   * with {@link TooLittleTimeException} before anything is subscribed (DL-10); where the deadline
   * has passed, with {@link DeadlineExceededException}. Without a deadline everything passes. Reads
   * once, at subscription; the work that is begun is bounded by {@link #within} further down.
   *
   * @throws IllegalArgumentException where least is negative
   */
  public static <T> UnaryOperator<Publisher<T>> requireAtLeast(Duration least) {
    return requiring(least, null);
  }

  /** As {@link #requireAtLeast(Duration)}, with the name of the operation for the error. */
  public static <T> UnaryOperator<Publisher<T>> requireAtLeast(Duration least, String operation) {
    return requiring(least, Objects.requireNonNull(operation, "operation"));
  }

  /**
   * Fails a sequence with {@link GapTimeoutException}, and cancels it, once downstream has asked
   * and upstream has sent nothing for this long (DL-6). The time in which nothing is asked for, or
   * in which downstream is busy with an item, does not count, so a slow consumer never trips it;
   * the wait for the first item does. An item starts the time anew. More than 100 years: 100 years.
   *
   * <p>The clock and the timer are those of the deadline in the Context, or of {@link
   * reactor.core.scheduler.Schedulers#parallel()}. An item costs no timer; on a sequence that sent
   * fast the error comes up to an eighth of the gap late.
   *
   * @throws IllegalArgumentException where gap is zero or negative
   */
  public static <T> UnaryOperator<Publisher<T>> gapTimeout(Duration gap) {
    return watched(gap, null);
  }

  /** As {@link #gapTimeout(Duration)}, with the name of the operation for the error. */
  public static <T> UnaryOperator<Publisher<T>> gapTimeout(Duration gap, String operation) {
    return watched(gap, Objects.requireNonNull(operation, "operation"));
  }

  /**
   * Calls a second time where no answer came for this long, takes the first answer and cancels the
   * other call (DL-11), such as {@code mono.transform(Deadlines.hedge(ofMillis(50), budget))}. For
   * a Mono whose work may be done twice: both calls are subscriptions of it, with the same Context.
   * A Flux has no such operator, since what came from one call cannot be taken up by another.
   *
   * <p>An empty end is an answer. Where one call fails while the other still runs, the other is
   * waited for; where both fail, the last error is told. An error before the second call is told at
   * once: trying again is {@link RetryWithin}'s.
   *
   * <p>No second call is made where less than {@code after} is left of the Context's deadline,
   * since it could hardly answer in time, nor where the budget grants none; the first goes on
   * alone. Each subscription counts as a request of the budget. The time counts from downstream's
   * request, on the scheduler of the deadline, where the second call is made. The ledger gets
   * {@code <operation> before its hedge}.
   *
   * @throws IllegalArgumentException where after is zero or negative
   */
  public static <T> UnaryOperator<Mono<T>> hedge(Duration after, RetryBudget budget) {
    return hedged(after, budget, after, null);
  }

  /**
   * As {@link #hedge(Duration, RetryBudget)}, with the least time that must be left for the second
   * call, and the name of the operation for the ledger.
   *
   * @throws IllegalArgumentException where after is zero or negative, or leastUseful negative
   */
  public static <T> UnaryOperator<Mono<T>> hedge(
      Duration after, RetryBudget budget, Duration leastUseful, String operation) {
    return hedged(after, budget, leastUseful, Objects.requireNonNull(operation, "operation"));
  }

  /**
   * Serves items one after the other, each within its share of what is left of the Context's
   * deadline when its turn comes: half of it, all of it for the last (DL-12, {@link
   * Deadline#share}). Like {@code Flux.fromIterable(items).concatMap(mapper)}, in order and at
   * downstream's demand; but an item whose share runs out ends with what it gave, and the next has
   * its turn. Each item's sequence finds its share in its Context.
   *
   * <p>What an item lacks is not told; for that there is {@link #concatMapShared(Iterable,
   * Function, BiFunction)}. Any other error of an item ends the whole. Without a deadline nothing
   * is cut. Items whose turn comes after the deadline are cut without being begun, so that what
   * came in still gets through a bound downstream. All of the items are read at each subscription,
   * before the first is begun: their number decides the shares, so they must come to an end.
   */
  public static <A, R> Flux<R> concatMapShared(
      Iterable<? extends A> items, Function<? super A, ? extends Publisher<? extends R>> mapper) {
    return concatMapShared(items, mapper, (item, late) -> Mono.empty());
  }

  /**
   * As {@link #concatMapShared(Iterable, Function)}, and tells what was cut: the sequence that
   * {@code onCut} makes of the item and the error follows what the item gave, such as a marker for
   * the caller, or {@code Mono.error(late)} to fail after all. It runs when the item's share is
   * over, on the time of those that follow, so it should be at hand.
   *
   * <p>Cut is an item that fails with the {@link DeadlineExceededException} of its share, whoever
   * noticed first, or with {@link TooLittleTimeException} for it; the deadline of a bound of its
   * own that passed is an error as any other.
   */
  public static <A, R> Flux<R> concatMapShared(
      Iterable<? extends A> items,
      Function<? super A, ? extends Publisher<? extends R>> mapper,
      BiFunction<? super A, ? super DeadlineExceededException, ? extends Publisher<? extends R>>
          onCut) {
    Objects.requireNonNull(items, "items");
    Objects.requireNonNull(mapper, "mapper");
    Objects.requireNonNull(onCut, "onCut");
    return new SharedConcat<A, R>(mapper, onCut).over(items);
  }

  /**
   * A Mono that reads the deadline once, at each subscription, such as {@code Deadlines.defer(d ->
   * call(d.remaining()))}; {@link Deadline#none()} where the Context has none (DL-3). Where the
   * deadline has passed, the call is not made, and the Mono fails with {@link
   * DeadlineExceededException}.
   */
  public static <T> Mono<T> defer(Function<? super Deadline, ? extends Mono<? extends T>> call) {
    return defer("deferred call", call);
  }

  /** As {@link #defer(Function)}, with the name of the operation for the error. */
  public static <T> Mono<T> defer(
      String operation, Function<? super Deadline, ? extends Mono<? extends T>> call) {
    Objects.requireNonNull(operation, "operation");
    Objects.requireNonNull(call, "call");
    return Mono.deferContextual(
        context -> {
          Deadline deadline = current(context);
          return deadline.isExpired() ? expired(deadline, operation) : call.apply(deadline);
        });
  }

  /** {@link #defer(Function)} for a Flux. */
  public static <T> Flux<T> deferMany(Function<? super Deadline, ? extends Publisher<T>> call) {
    return deferMany("deferred call", call);
  }

  /** {@link #defer(String, Function)} for a Flux. */
  public static <T> Flux<T> deferMany(
      String operation, Function<? super Deadline, ? extends Publisher<T>> call) {
    Objects.requireNonNull(operation, "operation");
    Objects.requireNonNull(call, "call");
    return Flux.deferContextual(
        context -> {
          Deadline deadline = current(context);
          return deadline.isExpired() ? expired(deadline, operation) : call.apply(deadline);
        });
  }

  /** The one to be enforced under an outer one; the outer one where both pass at once (DL-9). */
  static Deadline lesser(Deadline outer, Deadline inner) {
    Deadline lesser = outer.earlier(inner);
    return lesser == outer ? outer : lesser.chargingAlso(outer);
  }

  /**
   * Fails as an enforcing operator does: by the deadline's own timer, which is brought forward. A
   * mere error could be retried for ever upstream of a bound whose timer is waiting for this very
   * thread.
   */
  private static <T> Mono<T> expired(Deadline deadline, String operation) {
    return new MonoDeadline<>(Mono.never(), Bound.of(deadline, operation));
  }

  private static <T> UnaryOperator<Publisher<T>> bounded(Bound bound) {
    return bound::apply;
  }

  private static <T> UnaryOperator<Publisher<T>> watched(Duration gap, @Nullable String operation) {
    Objects.requireNonNull(gap, "gapTimeout");
    if (gap.isZero() || gap.isNegative()) {
      throw new IllegalArgumentException("gapTimeout: " + gap + " (expected: > 0)");
    }
    return new GapTimeout(Durations.nanos(gap), operation)::apply;
  }

  private static <T> UnaryOperator<Mono<T>> hedged(
      Duration after, RetryBudget budget, Duration least, @Nullable String operation) {
    Objects.requireNonNull(after, "hedge.after");
    Objects.requireNonNull(budget, "budget");
    Objects.requireNonNull(least, "hedge.leastUseful");
    if (after.isZero() || after.isNegative()) {
      throw new IllegalArgumentException("hedge.after: " + after + " (expected: > 0)");
    }
    if (least.isNegative()) {
      throw new IllegalArgumentException("hedge.leastUseful: " + least + " (expected: >= 0)");
    }
    MonoHedge.Settings settings =
        new MonoHedge.Settings(Durations.nanos(after), budget, Durations.nanos(least), operation);
    return source -> new MonoHedge<>(source, settings);
  }

  private static <T> UnaryOperator<Publisher<T>> requiring(
      Duration least, @Nullable String operation) {
    Objects.requireNonNull(least, "requireAtLeast");
    if (least.isNegative()) {
      throw new IllegalArgumentException("requireAtLeast: " + least + " (expected: >= 0)");
    }
    return source -> {
      if (source instanceof Mono<T> mono) {
        return Mono.deferContextual(
            context -> {
              Mono<T> refusal = refusal(current(context), least, operation, mono);
              return refusal == null ? mono : refusal;
            });
      }
      Flux<T> flux = Flux.from(source);
      return Flux.deferContextual(
          context -> {
            Mono<T> refusal = refusal(current(context), least, operation, flux);
            return refusal == null ? flux : refusal;
          });
    };
  }

  private static <T> @Nullable Mono<T> refusal(
      Deadline deadline, Duration least, @Nullable String operation, Publisher<T> source) {
    if (deadline.isNone()) {
      return null;
    }
    long left = deadline.remainingNanos();
    if (left > 0 && left >= Durations.nanos(least)) {
      return null;
    }
    String name = Bound.name(operation, Scannable.from(source));
    return left <= 0
        ? expired(deadline, name)
        : Mono.error(new TooLittleTimeException(name, deadline, least));
  }
}
