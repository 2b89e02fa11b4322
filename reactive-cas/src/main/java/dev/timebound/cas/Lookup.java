package dev.timebound.cas;

import dev.timebound.cas.ShardStatuses.Verdict;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsResponse;
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
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * One existence check: each shard is asked for its own keys, in parallel (CAS-25). Keys whose home
 * does not answer, or is suspect, are asked of the shards that follow; what those have is present,
 * what they have not is not missing for that. A suspect home is asked last, before a key is called
 * anything (CAS-23).
 */
final class Lookup {
  /** Half of what gRPC's servers take, so that the message around the digests has its room. */
  private static final int MOST_KEYS = (2 << 20) / WireDigests.MOST_BYTES;

  private static final int AT_ONCE = 64;

  private final RingShards shards;
  private final ShardCalls calls;
  private final CasMeters meters;
  private final Set<Digest> asked;
  private final Deadline caller;
  private final Set<Digest> missing = ConcurrentHashMap.newKeySet();
  private final Map<Digest, Throwable> unknown = new ConcurrentHashMap<>();

  Lookup(
      RingShards shards,
      ShardCalls calls,
      CasMeters meters,
      Set<Digest> asked,
      ContextView context) {
    this.shards = shards;
    this.calls = calls;
    this.meters = meters;
    this.asked = asked;
    this.caller = Deadlines.current(context);
  }

  Mono<BlobPresence> run() {
    List<Digest> keys = new ArrayList<>(asked.size());
    for (Digest digest : asked) {
      if (!digest.isEmpty()) {
        keys.add(digest);
      }
    }
    return goOn(new Part(keys, Set.of(), List.of(), null))
        .then(Mono.fromSupplier(() -> new BlobPresence(asked, missing, unknown)));
  }

  /**
   * Keys that have come the same way.
   *
   * @param tried shards that were asked
   * @param skipped shards that were suspect, in the order in which they came
   * @param failure the home's own; null where it was not asked
   */
  private record Part(
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
  private Mono<Void> goOn(Part part) {
    Map<Next, List<Digest>> byNext = new LinkedHashMap<>();
    for (Digest key : part.keys()) {
      Next next = next(part, key);
      if (next == null) {
        unknown.put(key, cause(part));
      } else {
        byNext.computeIfAbsent(next, any -> new ArrayList<>()).add(key);
      }
    }
    List<Mono<Void>> requests = new ArrayList<>();
    byNext.forEach(
        (next, keys) -> {
          for (int from = 0; from < keys.size(); from += MOST_KEYS) {
            List<Digest> some = keys.subList(from, Math.min(keys.size(), from + MOST_KEYS));
            requests.add(Mono.defer(() -> ask(next, part.with(some))));
          }
        });
    return Flux.fromIterable(requests).flatMap(request -> request, AT_ONCE).then();
  }

  /**
   * Where some keys go.
   *
   * @param last it was skipped before, and nothing else is left
   */
  private record Next(Shard shard, DigestFunction function, boolean last) {}

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

  private Mono<Void> ask(Next next, Part part) {
    Shard shard = next.shard();
    Candidates<Shard> candidates = shards.claims(next.last() ? List.of(shard) : open(shard, part));
    Claim<Shard> claim = candidates.next();
    if (claim == null) {
      part.keys().forEach(key -> unknown.put(key, cause(part)));
      return Mono.empty();
    }
    if (claim.member() != shard) {
      // It is suspect and another is not; whose turn comes next depends on the key.
      claim.cancelled();
      return goOn(part.skipping(shard));
    }
    return sent(claim, candidates, next, part)
        .flatMap(answer -> answered(shard, part, answer, next.function()))
        .onErrorResume(e -> failed(shard, part, e));
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

  private Mono<Set<Digest>> sent(
      Claim<Shard> claim, Candidates<Shard> candidates, Next next, Part part) {
    Shard shard = next.shard();
    int left = Math.max(1, shards.all().size() - part.tried().size());
    FindMissingBlobsRequest request = request(shard, next.function(), part.keys());
    Claims claims = new Claims(claim, candidates, shard);
    return Mono.defer(
            () -> {
              Claim<Shard> present = claims.take();
              return present == null
                  ? Mono.error(new IllegalStateException("the shard has left the ring"))
                  : calls.unary(
                      present,
                      ContentAddressableStorageGrpc.getFindMissingBlobsMethod(),
                      request,
                      left);
            })
        .retryWhen(
            RetryWithin.maxRetries(calls.settings().retries())
                .backoff(RingSettings.retryBackoff())
                .filter(e -> mayRetry(e, left))
                .budget(calls.settings().retryBudget())
                .operation(Lookups.OPERATION))
        .map(answer -> missing(answer, next.function(), part.keys()));
  }

  /** A connectivity error is retried only where nobody else is left to be asked (CAS-4). */
  private static boolean mayRetry(Throwable failure, int left) {
    Verdict verdict = ShardStatuses.of(failure);
    return verdict == Verdict.CONNECTION ? left == 1 : verdict.retryable;
  }

  private static FindMissingBlobsRequest request(
      Shard shard, DigestFunction function, List<Digest> keys) {
    FindMissingBlobsRequest.Builder request =
        FindMissingBlobsRequest.newBuilder()
            .setInstanceName(shard.instanceName())
            .setDigestFunction(WireDigests.function(function));
    keys.forEach(key -> request.addBlobDigests(WireDigests.of(key)));
    return request.build();
  }

  /** An answer about something else could hide that a key is missing. */
  private static Set<Digest> missing(
      FindMissingBlobsResponse answer, DigestFunction function, List<Digest> keys) {
    Set<Digest> all = new HashSet<>();
    answer.getMissingBlobDigestsList().forEach(d -> all.add(WireDigests.from(d, function)));
    if (!all.isEmpty() && !new HashSet<>(keys).containsAll(all)) {
      throw Status.INTERNAL
          .withDescription("the server's answer names a digest that was not asked for")
          .asRuntimeException();
    }
    return all;
  }

  private Mono<Void> answered(Shard shard, Part part, Set<Digest> absent, DigestFunction function) {
    if (absent.isEmpty()) {
      return Mono.empty();
    }
    List<Digest> elsewhere = new ArrayList<>();
    for (Digest key : absent) {
      if (shards.home(key) == shard) {
        missing.add(key);
      } else {
        elsewhere.add(key);
      }
    }
    return elsewhere.isEmpty() ? Mono.empty() : goOn(part.with(elsewhere).without(shard, null));
  }

  private Mono<Void> failed(Shard shard, Part part, Throwable failure) {
    Verdict verdict = ShardStatuses.of(failure);
    if (verdict == Verdict.CALLER) {
      Throwable cause = failure.getCause();
      return Mono.error(new DeadlineExceededException(Lookups.OPERATION, caller, cause));
    }
    meters.lookupFailed(shard.name());
    boolean isHome = shards.home(part.keys().get(0)) == shard;
    if (isHome && verdict != Verdict.CONNECTION) {
      part.keys().forEach(key -> unknown.put(key, failure));
      return Mono.empty();
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
