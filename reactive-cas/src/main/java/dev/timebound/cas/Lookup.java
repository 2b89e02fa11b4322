package dev.timebound.cas;

import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsResponse;
import dev.timebound.health.Claim;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * One existence check (CAS-25). What a shard that is not the home has is present, what it has not
 * is not missing for that.
 */
final class Lookup extends KeyRounds<Lookup.Answer, Void> {
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

  /**
   * A shard's answer, which names what is missing.
   *
   * @param doubt where it names what is no digest, or was not asked for, too: that could hide that
   *     one of the others is missing
   */
  record Answer(Set<Digest> missing, @Nullable Throwable doubt) {}

  @Override
  Mono<Answer> call(Claim<Shard> claim, Next next, List<Digest> keys, int candidatesLeft) {
    FindMissingBlobsRequest request = request(next.shard(), next.function(), keys);
    return calls()
        .unary(
            claim,
            ContentAddressableStorageGrpc.getFindMissingBlobsMethod(),
            request,
            candidatesLeft)
        .map(answer -> read(next, answer, keys));
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

  private static Answer read(Next next, FindMissingBlobsResponse answer, List<Digest> keys) {
    AnswerByDigest<Boolean> said = new AnswerByDigest<>(next.shard(), next.function());
    answer.getMissingBlobDigestsList().forEach(d -> said.add(d, true, (one, other) -> one));
    Set<Digest> missing = new HashSet<>(said.digests());
    if (!missing.isEmpty()) {
      missing.retainAll(new HashSet<>(keys));
    }
    if (missing.size() < said.digests().size()) {
      return new Answer(missing, said.error("its answer names a digest that was not asked for"));
    }
    return new Answer(
        missing,
        said.hasMalformed() ? said.error("its answer does not tell what is missing") : null);
  }

  @Override
  Flux<Void> answered(Next next, List<Digest> keys, Answer answer) {
    Throwable doubt = answer.doubt();
    if (doubt != null) {
      meters().lookupFailed(next.shard().name());
    }
    if (!next.home()) {
      return elsewhere(next.shard(), doubt == null ? List.copyOf(answer.missing()) : keys);
    }
    missing.addAll(answer.missing());
    return doubt == null
        ? Flux.empty()
        : unknown(keys.stream().filter(key -> !answer.missing().contains(key)).toList(), doubt);
  }

  @Override
  Flux<Void> unknown(List<Digest> keys, Throwable cause) {
    keys.forEach(key -> unknown.put(key, cause));
    return Flux.empty();
  }
}
