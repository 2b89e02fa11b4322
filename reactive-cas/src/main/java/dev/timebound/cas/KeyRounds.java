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
import java.util.BitSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * Many keys asked of the ring: each shard is asked for its own, in parallel (CAS-25). Keys whose
 * home does not answer, or is suspect, are asked of the shards that follow. A suspect home is asked
 * last, before a key is called anything (CAS-23). For one subscription.
 *
 * @param <A> a shard's answer
 * @param <R> what is told of a key
 */
abstract class KeyRounds<A, R> {
  private final String operation;
  private final RingShards shards;
  private final ShardCalls calls;
  private final CasMeters meters;
  private final Deadline caller;
  private final KeyQueue<R> queue = new KeyQueue<>(this::asked);

  /** Of the keys that are not with their home any more; a key is in one place at a time. */
  private final Map<Digest, Trail> trails = new ConcurrentHashMap<>();

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
  abstract Flux<R> asked(Next next, List<Digest> keys);

  /** One call; ends the claim. */
  abstract Mono<A> call(Claim<Shard> claim, Next next, List<Digest> keys, int candidatesLeft);

  /** What follows from a shard's answer; {@link #elsewhere} for keys that it has not. */
  abstract Flux<R> answered(Next next, List<Digest> keys, A answer);

  /** No shard could say anything of these keys, or their home would not. */
  abstract Flux<R> unknown(List<Digest> keys, Throwable cause);

  /** The home answers, and would not say. */
  Flux<R> refused(Next next, List<Digest> keys, Throwable failure) {
    return unknown(keys, failure);
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
    return Flux.concat(goOn(keys), queue.results());
  }

  /** Keys that this shard, not their home, has not. */
  final Flux<R> elsewhere(Shard shard, List<Digest> keys) {
    return goOn(keys, trail -> trail.without(shard, null));
  }

  /**
   * Where some keys go.
   *
   * @param home it is their home
   * @param last it was skipped before, and nothing else is left
   * @param alone nobody else is left who was not asked
   */
  record Next(Shard shard, DigestFunction function, boolean home, boolean last, boolean alone) {}

  /**
   * What has been tried for some keys. Keys that have come the same way share it. A ring may have a
   * hundred shards and a hundred rounds, of each of many keys: hence sets of their places.
   *
   * @param passed tried or skipped
   * @param skipped and not tried since, in order
   */
  private record Trail(
      BitSet tried, BitSet passed, List<Shard> skipped, @Nullable Throwable failure) {
    static final Trail NONE = new Trail(new BitSet(), new BitSet(), List.of(), null);

    Trail without(Shard shard, @Nullable Throwable why) {
      List<Shard> fewer = skipped;
      if (skipped.contains(shard)) {
        fewer = new ArrayList<>(skipped);
        fewer.remove(shard);
      }
      Throwable first = failure == null ? why : failure;
      return new Trail(with(tried, shard), with(passed, shard), fewer, first);
    }

    Trail skipping(Shard shard) {
      List<Shard> more = new ArrayList<>(skipped);
      more.add(shard);
      return new Trail(tried, with(passed, shard), more, failure);
    }

    private static BitSet with(BitSet some, Shard shard) {
      BitSet more = (BitSet) some.clone();
      more.set(shard.index());
      return more;
    }
  }

  private interface Step {
    Trail from(Trail trail);
  }

  private Trail trail(Digest key) {
    return trails.getOrDefault(key, Trail.NONE);
  }

  private Flux<R> goOn(List<Digest> keys, Step step) {
    Map<Trail, Trail> steps = new IdentityHashMap<>();
    keys.forEach(key -> trails.put(key, steps.computeIfAbsent(trail(key), step::from)));
    return goOn(keys);
  }

  /**
   * Each key's next shard is going to be asked; what is told at once is of those that have none.
   */
  private Flux<R> goOn(List<Digest> keys) {
    Map<Trail, List<Digest>> nowhere = new IdentityHashMap<>();
    for (Digest key : keys) {
      Trail trail = trail(key);
      Next next = next(trail, key);
      if (next == null) {
        nowhere.computeIfAbsent(trail, any -> new ArrayList<>()).add(key);
      } else {
        queue.add(next, key);
      }
    }
    queue.drain();
    return Flux.fromIterable(nowhere.entrySet())
        .concatMap(lost -> unknown(lost.getValue(), cause(lost.getKey())));
  }

  private @Nullable Next next(Trail trail, Digest key) {
    int[] order = shards.places(key);
    boolean alone = trail.tried().cardinality() >= order.length - 1;
    for (int place : order) {
      if (!trail.passed().get(place)) {
        Shard shard = shards.all().get(place);
        return new Next(shard, key.function(), place == order[0], false, alone);
      }
    }
    if (trail.skipped().isEmpty()) {
      return null;
    }
    Shard skipped = trail.skipped().get(0);
    return new Next(skipped, key.function(), skipped.index() == order[0], true, alone);
  }

  private static Throwable cause(Trail trail) {
    Throwable failure = trail.failure();
    return failure != null
        ? failure
        : Status.UNAVAILABLE.withDescription("no shard of the ring answered").asRuntimeException();
  }

  /** Asks the shard in one call, unless it is suspect and another is not. */
  final Flux<R> ask(Next next, List<Digest> keys) {
    return sent(next, keys)
        .map(
            answer ->
                answer
                    .map(given -> answered(next, keys, given))
                    // it is suspect and another is not; whose turn comes next depends on the key
                    .orElseGet(() -> goOn(keys, trail -> trail.skipping(next.shard()))))
        .onErrorResume(e -> Mono.just(failed(next, keys, e)))
        .flatMapMany(results -> results);
  }

  /** The shard, and those that could stand in for it. */
  private List<Shard> open(Next next, List<Digest> keys) {
    List<Shard> order = new ArrayList<>();
    order.add(next.shard());
    if (!next.last()) {
      BitSet triedByAll = new BitSet();
      triedByAll.set(0, shards.all().size());
      keys.forEach(key -> triedByAll.and(trail(key).tried()));
      for (Shard other : shards.all()) {
        if (other != next.shard() && !triedByAll.get(other.index())) {
          order.add(other);
        }
      }
    }
    return order;
  }

  /** Empty where the shard is suspect and another is not. */
  private Mono<Optional<A>> sent(Next next, List<Digest> keys) {
    return Mono.defer(
        () -> {
          Shard shard = next.shard();
          int tried =
              keys.stream().mapToInt(key -> trail(key).tried().cardinality()).min().orElse(0);
          int left = Math.max(1, shards.all().size() - tried);
          Claims claims = new Claims(shards.claims(open(next, keys)), shard);
          return Mono.defer(
                  () -> {
                    // here and not before: whoever is subscribed ends the claim, come what may
                    Claim<Shard> claim = claims.next();
                    if (claim == null) {
                      return Mono.<Optional<A>>error(ShardCapabilities.left(shard));
                    }
                    if (claim.member() != shard) {
                      claim.cancelled();
                      return Mono.just(Optional.<A>empty());
                    }
                    return call(claim, next, keys, left).map(Optional::of);
                  })
              .retryWhen(
                  RetryWithin.maxRetries(calls.settings().retries())
                      .backoff(RingSettings.retryBackoff())
                      .filter(e -> mayRetry(e, next.alone()))
                      .budget(calls.settings().retryBudget())
                      .operation(operation));
        });
  }

  /** A connectivity error is retried only where nobody else is left to be asked (CAS-4). */
  private static boolean mayRetry(Throwable failure, boolean alone) {
    Verdict verdict = ShardStatuses.of(failure);
    return verdict == Verdict.CONNECTION || verdict == Verdict.HERE ? alone : verdict.retryable;
  }

  private Flux<R> failed(Next next, List<Digest> keys, Throwable failure) {
    Shard shard = next.shard();
    Verdict verdict = ShardStatuses.of(failure);
    if (verdict == Verdict.CALLER) {
      Throwable cause = failure.getCause();
      return Flux.error(new DeadlineExceededException(operation, caller, cause));
    }
    meters.lookupFailed(shard.name());
    if (next.home() && verdict != Verdict.CONNECTION && verdict != Verdict.HERE) {
      return refused(next, keys, failure);
    }
    return goOn(keys, trail -> trail.without(shard, next.home() ? failure : null));
  }

  /** One claim an attempt: the first by the shard's health, of a retry whatever its health. */
  private static final class Claims {
    private final Candidates<Shard> candidates;
    private final Shard shard;
    private boolean begun;

    Claims(Candidates<Shard> candidates, Shard shard) {
      this.candidates = candidates;
      this.shard = shard;
    }

    @Nullable Claim<Shard> next() {
      if (begun) {
        return candidates.again(shard);
      }
      begun = true;
      return candidates.next();
    }
  }
}
