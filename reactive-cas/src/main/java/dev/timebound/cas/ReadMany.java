package dev.timebound.cas;

import com.google.protobuf.ByteString;
import dev.timebound.cas.ShardStatuses.Verdict;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsResponse;
import dev.timebound.health.Claim;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * One read of many blobs: small ones in batches of their shard, large ones one by one (CAS-31). A
 * batch goes where each of its blobs would go alone; a blob's status is that blob's alone.
 */
final class ReadMany extends KeyRounds<BatchReadBlobsResponse, ReadManyResult> {
  private final Reads reads;
  private final ShardCapabilities capabilities;
  private final ItemRetries retries;
  private final ContextView context;

  ReadMany(Reads reads, ShardCapabilities capabilities, ContextView context) {
    super(Reads.MANY, reads.shards(), reads.calls(), reads.meters(), context);
    this.reads = reads;
    this.capabilities = capabilities;
    this.context = context;
    this.retries = new ItemRetries(reads.settings(), caller());
  }

  Flux<ReadManyResult> run(Collection<Digest> digests) {
    List<Digest> keys = new ArrayList<>();
    List<ReadManyResult> known = new ArrayList<>();
    for (Digest digest : new LinkedHashSet<>(digests)) {
      if (digest.isEmpty()) {
        known.add(ReadManyResult.of(digest, ByteBuffer.allocate(0).asReadOnlyBuffer()));
      } else {
        keys.add(digest);
      }
    }
    return Flux.fromIterable(known).concatWith(begin(keys));
  }

  /**
   * Does not wait to learn what the server can: a shard that is frozen must not cost more than its
   * share of the time. The smallest batch limit does until it is known.
   */
  @Override
  Flux<ReadManyResult> asked(Next next, List<Digest> keys) {
    return split(next, keys, Batches.limit(capabilities.known(next.shard())));
  }

  /** A batch that turns out too large for the server is cut. */
  @Override
  Flux<ReadManyResult> refused(Next next, List<Digest> keys, Throwable failure) {
    Flux<ReadManyResult> told = unknown(keys, failure);
    if (Status.fromThrowable(failure).getCode() != Status.Code.INVALID_ARGUMENT) {
      return told;
    }
    return capabilities
        .serving(next.shard(), next.function())
        .map(Batches::limit)
        .filter(limit -> !Batches.of(keys, Digest::sizeBytes, limit).isOne())
        .map(limit -> split(next, keys, limit))
        .onErrorComplete(e -> ShardStatuses.of(e) != Verdict.CALLER)
        .defaultIfEmpty(told)
        .flatMapMany(results -> results);
  }

  private Flux<ReadManyResult> split(Next next, List<Digest> keys, long limit) {
    Batches<Digest> batches = Batches.of(keys, Digest::sizeBytes, limit);
    Flux<ReadManyResult> small =
        Flux.fromIterable(batches.packs()).flatMap(pack -> ask(next, pack), Batches.AT_ONCE);
    return batches.singles().isEmpty() ? small : Flux.merge(small, alone(batches.singles()));
  }

  private Flux<ReadManyResult> alone(List<Digest> large) {
    return Flux.fromIterable(large)
        .flatMap(
            digest ->
                reads
                    .readAll(digest)
                    .map(
                        bytes ->
                            ReadManyResult.of(digest, ByteBuffer.wrap(bytes).asReadOnlyBuffer()))
                    .onErrorResume(
                        e -> ShardStatuses.of(e) != Verdict.CALLER,
                        e -> Mono.just(ReadManyResult.failed(digest, e))),
            Batches.AT_ONCE);
  }

  @Override
  Mono<BatchReadBlobsResponse> call(
      Claim<Shard> claim, Next next, List<Digest> keys, int candidatesLeft) {
    BatchReadBlobsRequest.Builder request =
        BatchReadBlobsRequest.newBuilder()
            .setInstanceName(next.shard().instanceName())
            .setDigestFunction(WireDigests.function(next.function()));
    keys.forEach(key -> request.addDigests(WireDigests.of(key)));
    meters().batch("read", keys.size());
    return calls()
        .unary(
            claim,
            ContentAddressableStorageGrpc.getBatchReadBlobsMethod(),
            request.build(),
            candidatesLeft)
        .doOnNext(answer -> capabilities.learn(next.shard(), context));
  }

  @Override
  Flux<ReadManyResult> answered(Next next, List<Digest> keys, BatchReadBlobsResponse answer) {
    AnswerByDigest<BatchReadBlobsResponse.Response> said =
        new AnswerByDigest<>(next.shard(), next.function());
    answer
        .getResponsesList()
        .forEach(
            r ->
                said.add(
                    r.getDigest(),
                    r,
                    // of two that contradict each other the bytes: they prove themselves
                    (one, other) -> one.getStatus().getCode() == 0 ? one : other));
    List<ReadManyResult> done = new ArrayList<>();
    List<Digest> again = new ArrayList<>();
    List<ReadManyResult> failed = new ArrayList<>();
    List<Digest> elsewhere = new ArrayList<>();
    for (Digest key : keys) {
      ReadManyResult result = result(next.shard(), key, said);
      Throwable failure = result.failure();
      if (failure == null || failure instanceof DataLossException) {
        done.add(result);
      } else if (!next.home()) {
        elsewhere.add(key);
      } else if (ItemRetries.isTransient(failure) && retries.may(key)) {
        again.add(key);
        failed.add(result);
      } else {
        done.add(result);
      }
    }
    return Flux.fromIterable(done)
        .concatWith(elsewhere(next.shard(), elsewhere))
        .concatWith(retries.after(again, () -> ask(next, again), failed));
  }

  private ReadManyResult result(
      Shard shard, Digest key, AnswerByDigest<BatchReadBlobsResponse.Response> said) {
    BatchReadBlobsResponse.Response answer = said.get(key);
    if (answer == null) {
      return ReadManyResult.failed(key, said.leftOut(key));
    }
    int code = answer.getStatus().getCode();
    if (code == Status.Code.NOT_FOUND.value()) {
      StatusRuntimeException status = ItemRetries.failure(shard, key, answer.getStatus());
      return ReadManyResult.failed(key, new BlobNotFoundException(key, shard.name(), status));
    }
    if (code != Status.Code.OK.value()) {
      return ReadManyResult.failed(key, ItemRetries.failure(shard, key, answer.getStatus()));
    }
    return checked(key, answer.getData());
  }

  private ReadManyResult checked(Digest key, ByteString data) {
    ByteBuffer bytes = data.asReadOnlyByteBuffer();
    try {
      DigestVerifier.of(key).update(bytes).finish();
    } catch (DataLossException wrong) {
      meters().mismatch();
      return ReadManyResult.failed(key, wrong);
    }
    meters().read(data.size());
    return ReadManyResult.of(key, bytes);
  }

  @Override
  Flux<ReadManyResult> unknown(List<Digest> keys, Throwable cause) {
    return Flux.fromIterable(keys).map(key -> ReadManyResult.failed(key, cause));
  }
}
