package dev.timebound.cas;

import com.google.protobuf.UnsafeByteOperations;
import dev.timebound.cas.ShardStatuses.Verdict;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution.BatchUpdateBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.BatchUpdateBlobsResponse;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.deadline.RetryWithin;
import dev.timebound.health.Claim;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * One write of many blobs: small ones in batches of their home, large ones one by one (CAS-31), and
 * none anywhere else (CAS-26).
 */
final class WriteMany {
  private static final int SHARDS_AT_ONCE = 64;

  private final Writes writes;
  private final ShardCalls calls;
  private final RingSettings settings;
  private final Deadline caller;
  private final ItemRetries retries;

  WriteMany(Writes writes, ContextView context) {
    this.writes = writes;
    this.calls = writes.calls();
    this.settings = writes.settings();
    this.caller = Deadlines.current(context);
    this.retries = new ItemRetries(settings, caller);
  }

  private record Blob(Digest digest, byte[] content) {
    WriteManyResult failed(Throwable failure) {
      return new WriteManyResult(digest, failure);
    }
  }

  /** Where some blobs go. */
  private record Home(Shard shard, DigestFunction function) {}

  Flux<WriteManyResult> run(Map<Digest, byte[]> blobs) {
    Map<Home, List<Blob>> byHome = new LinkedHashMap<>();
    List<WriteManyResult> known = new ArrayList<>();
    blobs.forEach(
        (digest, content) -> {
          if (digest.isEmpty() && content.length == 0) {
            known.add(new WriteManyResult(digest, null));
          } else {
            Home home = new Home(writes.shards().home(digest), digest.function());
            byHome.computeIfAbsent(home, any -> new ArrayList<>()).add(new Blob(digest, content));
          }
        });
    Flux<WriteManyResult> sent =
        Flux.fromIterable(byHome.entrySet())
            .flatMap(home -> toHome(home.getKey(), home.getValue()), SHARDS_AT_ONCE);
    return Flux.fromIterable(known).concatWith(sent);
  }

  private Flux<WriteManyResult> toHome(Home home, List<Blob> blobs) {
    return retried(Mono.defer(() -> writes.capabilities().serving(home.shard(), home.function())))
        .map(can -> split(home, blobs, Batches.limit(can)))
        .onErrorResume(this::isTheirs, e -> Mono.just(all(blobs, e)))
        .flatMapMany(results -> results);
  }

  private <T> Mono<T> retried(Mono<T> call) {
    return call.retryWhen(
        RetryWithin.maxRetries(settings.retries())
            .backoff(RingSettings.retryBackoff())
            .filter(e -> ShardStatuses.of(e).retryable)
            .budget(settings.retryBudget())
            .operation(Writes.MANY));
  }

  /** The caller's own end is that of all; anything else is told of each blob. */
  private boolean isTheirs(Throwable failure) {
    return ShardStatuses.of(failure) != Verdict.CALLER;
  }

  private static Flux<WriteManyResult> all(List<Blob> blobs, Throwable failure) {
    return Flux.fromIterable(blobs).map(blob -> blob.failed(failure));
  }

  private Flux<WriteManyResult> split(Home home, List<Blob> blobs, long limit) {
    Batches<Blob> batches = Batches.of(blobs, blob -> blob.content().length, limit);
    Flux<WriteManyResult> small =
        Flux.fromIterable(batches.packs()).flatMap(pack -> checked(home, pack), Batches.AT_ONCE);
    return batches.singles().isEmpty() ? small : Flux.merge(small, alone(batches.singles()));
  }

  private Flux<WriteManyResult> alone(List<Blob> large) {
    return Flux.fromIterable(large)
        .flatMap(
            blob ->
                writes
                    .write(blob.digest(), blob.content())
                    .map(done -> new WriteManyResult(done.digest(), null))
                    .onErrorResume(this::isTheirs, e -> Mono.just(blob.failed(e))),
            Batches.AT_ONCE);
  }

  /** What is not what it is called goes nowhere. */
  private Flux<WriteManyResult> checked(Home home, List<Blob> pack) {
    return Flux.defer(
        () -> {
          List<Blob> right = new ArrayList<>();
          List<WriteManyResult> wrong = new ArrayList<>();
          for (Blob blob : pack) {
            Digest found = Digest.of(blob.content(), blob.digest().function());
            if (found.equals(blob.digest())) {
              right.add(blob);
            } else {
              wrong.add(blob.failed(DataLossException.mismatch(blob.digest(), found)));
            }
          }
          Flux<WriteManyResult> sent = right.isEmpty() ? Flux.empty() : send(home, right);
          return Flux.fromIterable(wrong).concatWith(sent);
        });
  }

  private Flux<WriteManyResult> send(Home home, List<Blob> pack) {
    return retried(Mono.defer(() -> call(home, pack)))
        .map(answer -> answered(home, pack, answer))
        .onErrorResume(this::isTheirs, e -> Mono.just(all(pack, e)))
        .flatMapMany(results -> results);
  }

  private Mono<BatchUpdateBlobsResponse> call(Home home, List<Blob> pack) {
    Claim<Shard> claim = writes.shards().claims(List.of(home.shard())).next();
    if (claim == null) {
      return Mono.error(ShardCapabilities.left(home.shard()));
    }
    BatchUpdateBlobsRequest.Builder request =
        BatchUpdateBlobsRequest.newBuilder()
            .setInstanceName(home.shard().instanceName())
            .setDigestFunction(WireDigests.function(home.function()));
    int bytes = 0;
    for (Blob blob : pack) {
      bytes += blob.content().length;
      request
          .addRequestsBuilder()
          .setDigest(WireDigests.of(blob.digest()))
          .setData(UnsafeByteOperations.unsafeWrap(blob.content()));
    }
    writes.meters().batch("write", pack.size());
    writes.meters().written(bytes);
    return calls.unary(
        claim, ContentAddressableStorageGrpc.getBatchUpdateBlobsMethod(), request.build(), 1);
  }

  private Flux<WriteManyResult> answered(
      Home home, List<Blob> pack, BatchUpdateBlobsResponse answer) {
    AnswerByDigest<com.google.rpc.Status> said =
        new AnswerByDigest<>(home.shard(), home.function());
    answer
        .getResponsesList()
        .forEach(r -> said.add(r.getDigest(), r.getStatus(), (first, last) -> last));
    List<WriteManyResult> done = new ArrayList<>();
    List<WriteManyResult> failed = new ArrayList<>();
    List<Blob> again = new ArrayList<>();
    for (Blob blob : pack) {
      WriteManyResult result = result(home.shard(), blob, said);
      Throwable failure = result.failure();
      if (failure != null && ItemRetries.isTransient(failure) && retries.may(blob.digest())) {
        again.add(blob);
        failed.add(result);
      } else {
        done.add(result);
      }
    }
    List<Digest> digests = again.stream().map(Blob::digest).toList();
    return Flux.fromIterable(done)
        .concatWith(retries.after(digests, () -> send(home, again), failed));
  }

  private static WriteManyResult result(
      Shard shard, Blob blob, AnswerByDigest<com.google.rpc.Status> said) {
    com.google.rpc.Status status = said.get(blob.digest());
    if (status == null) {
      return blob.failed(said.leftOut(blob.digest()));
    }
    return status.getCode() == 0
        ? new WriteManyResult(blob.digest(), null)
        : blob.failed(ItemRetries.failure(shard, blob.digest(), status));
  }
}
