package dev.timebound.cas;

import dev.timebound.cas.ShardStatuses.Verdict;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.deadline.RetryWithin;
import dev.timebound.health.Candidates;
import dev.timebound.health.Claim;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * Many keys asked of the ring: each shard is asked for its own, in parallel (CAS-25). Keys whose
 * home does not answer, or is suspect, are asked of the shards that follow. A suspect home is asked
 * last, before a key is called anything (CAS-23).
 *
 * @param <A> a shard's answer
 * @param <R> what is told of a key
 */
abstract class KeyRounds<A, R> {
  private static final int AT_ONCE = 64;

  private final String operation;
  private final RingShards shards;
  private final ShardCalls calls;
  private final CasMeters meters;
  private final Deadline caller;

  KeyRounds(
      String operation,
      RingShards shards,
      ShardCalls calls,
      CasMeters meters,
      ContextView context) {
    this.operation = operation;
    this.shards = shards;
    this.calls = calls;
    this.meters = meters;
    this.caller = Deadlines.current(context);
  }

  // --- what the kinds differ in

  /** Asks a shard for these keys, in one call of {@link #ask} or several. */
  abstract Flux<R> asked(Next next, Part part);

  /** One call; ends the claim. */
  abstract Mono<A> call(Claim<Shard> claim, Next next, List<Digest> keys, int candidatesLeft);

  /** What follows from a shard's answer; {@link #elsewhere} for keys that it has not. */
  abstract Flux<R> answered(Next next, Part part, A answer);

  /** No shard could say anything of these keys, or their home would not. */
  abstract Flux<R> unknown(List<Digest> keys, Throwable cause);

  /** The home answers, and would not say. */
  Flux<R> refused(Next next, Part part, Throwable failure) {
    return unknown(part.keys(), failure);
  }

  // --- the rounds

  final RingShards shards() {
    return shards;
  }

  final ShardCalls calls() {
    return calls;
  }

  final CasMeters meters() {
    return meters;
  }

  final Deadline caller() {
    return caller;
  }

  final Flux<R> begin(List<Digest> keys) {
    return goOn(new Part(keys, Set.of(), List.of(), null));
  }

  /** Keys that this shard, not their home, has not. */
  final Flux<R> elsewhere(Shard shard, Part part, List<Digest> keys) {
    return keys.isEmpty() ? Flux.empty() : goOn(part.with(keys).without(shard, null));
  }

  /**
   * Keys that have come the same way.
   *
   * @param tried shards that were asked
   * @param skipped shards that were suspect, in the order in which they came
   * @param failure the home's own; null where it was not asked
   */
  record Part(
      List<Digest> keys, Set<Shard> tried, List<Shard> skipped, @Nullable Throwable failure) {
    Part with(List<Digest> some) {
      return new Part(some, tried, skipped, failure);
    }

    Part without(Shard shard, @Nullable Throwable why) {
      Set<Shard> more = new HashSet<>(tried);
      more.add(shard);
      List<Shard> fewer = new ArrayList<>(skipped);
      fewer.remove(shard);
      return new Part(keys, more, fewer, failure == null ? why : failure);
    }

    Part skipping(Shard shard) {
      List<Shard> more = new ArrayList<>(skipped);
      more.add(shard);
      return new Part(keys, tried, more, failure);
    }
  }

  /** Asks the next shard of each key. */
  private Flux<R> goOn(Part part) {
    Map<Next, List<Digest>> byNext = new LinkedHashMap<>();
    List<Digest> nowhere = new ArrayList<>();
    for (Digest key : part.keys()) {
      Next next = next(part, key);
      if (next == null) {
        nowhere.add(key);
      } else {
        byNext.computeIfAbsent(next, any -> new ArrayList<>()).add(key);
      }
    }
    Flux<R> rest = nowhere.isEmpty() ? Flux.empty() : unknown(nowhere, cause(part));
    return Flux.fromIterable(byNext.entrySet())
        .flatMap(shard -> asked(shard.getKey(), part.with(shard.getValue())), AT_ONCE)
        .concatWith(rest);
  }

  /**
   * Where some keys go.
   *
   * @param last it was skipped before, and nothing else is left
   */
  record Next(Shard shard, DigestFunction function, boolean last) {}

  private @Nullable Next next(Part part, Digest key) {
    for (Shard shard : shards.order(key)) {
      if (!part.tried().contains(shard) && !part.skipped().contains(shard)) {
        return new Next(shard, key.function(), false);
      }
    }
    return part.skipped().isEmpty() ? null : new Next(part.skipped().get(0), key.function(), true);
  }

  private static Throwable cause(Part part) {
    Throwable failure = part.failure();
    return failure != null
        ? failure
        : Status.UNAVAILABLE.withDescription("no shard of the ring answered").asRuntimeException();
  }

  /** Asks the shard in one call, unless it is suspect and another is not. */
  final Flux<R> ask(Next next, Part part) {
    return Flux.defer(() -> claimed(next, part));
  }

  private Flux<R> claimed(Next next, Part part) {
    Shard shard = next.shard();
    Candidates<Shard> candidates = shards.claims(next.last() ? List.of(shard) : open(shard, part));
    Claim<Shard> claim = candidates.next();
    if (claim == null) {
      return unknown(part.keys(), cause(part));
    }
    if (claim.member() != shard) {
      // It is suspect and another is not; whose turn comes next depends on the key.
      claim.cancelled();
      return goOn(part.skipping(shard));
    }
    return sent(claim, candidates, next, part)
        .map(answer -> answered(next, part, answer))
        .onErrorResume(e -> Mono.just(failed(next, part, e)))
        .flatMapMany(results -> results);
  }

  /** The shard, and those that could stand in for it. */
  private List<Shard> open(Shard shard, Part part) {
    List<Shard> order = new ArrayList<>();
    order.add(shard);
    for (Shard other : shards.all()) {
      if (other != shard && !part.tried().contains(other)) {
        order.add(other);
      }
    }
    return order;
  }

  private Mono<A> sent(Claim<Shard> claim, Candidates<Shard> candidates, Next next, Part part) {
    Shard shard = next.shard();
    int left = Math.max(1, shards.all().size() - part.tried().size());
    Claims claims = new Claims(claim, candidates, shard);
    return Mono.defer(
            () -> {
              Claim<Shard> present = claims.take();
              return present == null
                  ? Mono.error(ShardCapabilities.left(shard))
                  : call(present, next, part.keys(), left);
            })
        .retryWhen(
            RetryWithin.maxRetries(calls.settings().retries())
                .backoff(RingSettings.retryBackoff())
                .filter(e -> mayRetry(e, left))
                .budget(calls.settings().retryBudget())
                .operation(operation));
  }

  /** A connectivity error is retried only where nobody else is left to be asked (CAS-4). */
  private static boolean mayRetry(Throwable failure, int left) {
    Verdict verdict = ShardStatuses.of(failure);
    return verdict == Verdict.CONNECTION ? left == 1 : verdict.retryable;
  }

  private Flux<R> failed(Next next, Part part, Throwable failure) {
    Shard shard = next.shard();
    Verdict verdict = ShardStatuses.of(failure);
    if (verdict == Verdict.CALLER) {
      Throwable cause = failure.getCause();
      return Flux.error(new DeadlineExceededException(operation, caller, cause));
    }
    meters.lookupFailed(shard.name());
    boolean isHome = shards.home(part.keys().get(0)) == shard;
    if (isHome && verdict != Verdict.CONNECTION) {
      return refused(next, part, failure);
    }
    return goOn(part.without(shard, isHome ? failure : null));
  }

  /** One claim an attempt: the first was made to find out whether the shard is in service. */
  private static final class Claims {
    private @Nullable Claim<Shard> first;
    private final Candidates<Shard> candidates;
    private final Shard shard;

    Claims(Claim<Shard> first, Candidates<Shard> candidates, Shard shard) {
      this.first = first;
      this.candidates = candidates;
      this.shard = shard;
    }

    @Nullable Claim<Shard> take() {
      Claim<Shard> taken = first;
      first = null;
      return taken != null ? taken : candidates.again(shard);
    }
  }
}
