package dev.timebound.cas;

import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsResponse;
import dev.timebound.health.Claim;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * One existence check (CAS-25). What a shard that is not the home has is present, what it has not
 * is not missing for that.
 */
final class Lookup extends KeyRounds<Set<Digest>, Void> {
  /** Half of what gRPC's servers take, so that the message around the digests has its room. */
  private static final int MOST_KEYS = (2 << 20) / WireDigests.MOST_BYTES;

  private final Set<Digest> asked;
  private final Set<Digest> missing = ConcurrentHashMap.newKeySet();
  private final Map<Digest, Throwable> unknown = new ConcurrentHashMap<>();

  Lookup(
      RingShards shards,
      ShardCalls calls,
      CasMeters meters,
      Set<Digest> asked,
      ContextView context) {
    super(Lookups.OPERATION, shards, calls, meters, context);
    this.asked = asked;
  }

  Mono<BlobPresence> run() {
    List<Digest> keys = new ArrayList<>(asked.size());
    for (Digest digest : asked) {
      if (!digest.isEmpty()) {
        keys.add(digest);
      }
    }
    return begin(keys).then(Mono.fromSupplier(() -> new BlobPresence(asked, missing, unknown)));
  }

  @Override
  Flux<Void> asked(Next next, List<Digest> keys) {
    List<Flux<Void>> requests = new ArrayList<>();
    for (int from = 0; from < keys.size(); from += MOST_KEYS) {
      List<Digest> some = keys.subList(from, Math.min(keys.size(), from + MOST_KEYS));
      requests.add(ask(next, some));
    }
    return Flux.merge(requests);
  }

  @Override
  Mono<Set<Digest>> call(Claim<Shard> claim, Next next, List<Digest> keys, int candidatesLeft) {
    FindMissingBlobsRequest request = request(next.shard(), next.function(), keys);
    return calls()
        .unary(
            claim,
            ContentAddressableStorageGrpc.getFindMissingBlobsMethod(),
            request,
            candidatesLeft)
        .map(answer -> missing(next.shard(), answer, next.function(), keys));
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
      Shard shard, FindMissingBlobsResponse answer, DigestFunction function, List<Digest> keys) {
    Set<Digest> all = new HashSet<>();
    answer.getMissingBlobDigestsList().forEach(d -> all.add(WireDigests.from(shard, d, function)));
    if (!all.isEmpty() && !new HashSet<>(keys).containsAll(all)) {
      throw Status.INTERNAL
          .withDescription(shard + ": its answer names a digest that was not asked for")
          .asRuntimeException();
    }
    return all;
  }

  @Override
  Flux<Void> answered(Next next, List<Digest> keys, Set<Digest> absent) {
    if (next.home()) {
      missing.addAll(absent);
      return Flux.empty();
    }
    return elsewhere(next.shard(), List.copyOf(absent));
  }

  @Override
  Flux<Void> unknown(List<Digest> keys, Throwable cause) {
    keys.forEach(key -> unknown.put(key, cause));
    return Flux.empty();
  }
}
