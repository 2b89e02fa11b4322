package dev.timebound.demo.cas;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import dev.timebound.cas.CasConfig;
import dev.timebound.cas.Digest;
import dev.timebound.cas.ShardSelector;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.cas.wire.ByteStreams.WriteRequest;
import dev.timebound.cas.wire.ByteStreams.WriteResponse;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsResponse;
import io.grpc.Context;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.stub.StreamObserver;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.Consumer;
import reactor.core.publisher.Flux;
import reactor.core.publisher.FluxSink;
import reactor.core.publisher.Mono;

/** A channel for each shard with its defaults, generated stubs, the ring's mapping, and no more. */
final class StockClient implements StoreClient {
  private final ShardSelector selector;
  private final List<ManagedChannel> channels = new ArrayList<>();

  StockClient(CasConfig ring) {
    this.selector = ring.weighted();
    for (CasConfig.Shard shard : ring.shards()) {
      CasConfig.Endpoint endpoint = shard.endpoints().get(0);
      channels.add(
          ManagedChannelBuilder.forAddress(endpoint.host(), endpoint.port())
              .usePlaintext()
              .build());
    }
  }

  private ManagedChannel home(Digest digest) {
    return channels.get(selector.home(digest));
  }

  @Override
  public Flux<ByteBuffer> read(Digest digest, Duration time) {
    return StockClient.<ReadResponse>call(
            observer ->
                ByteStreamGrpc.newStub(home(digest))
                    .read(
                        ReadRequest.newBuilder().setResourceName("blobs/" + digest).build(),
                        observer))
        .map(response -> response.getData().asReadOnlyByteBuffer());
  }

  @Override
  public Mono<Map<Digest, Presence>> check(Set<Digest> digests, Duration time) {
    Map<ManagedChannel, List<Digest>> byShard = new HashMap<>();
    digests.forEach(
        digest -> byShard.computeIfAbsent(home(digest), any -> new ArrayList<>()).add(digest));
    return Flux.fromIterable(byShard.entrySet())
        .flatMap(shard -> missing(shard.getKey(), shard.getValue()))
        .collectList()
        .map(
            answers -> {
              Map<Digest, Presence> all = new HashMap<>();
              digests.forEach(digest -> all.put(digest, Presence.PRESENT));
              answers.stream()
                  .flatMap(answer -> answer.getMissingBlobDigestsList().stream())
                  .forEach(
                      digest ->
                          all.put(
                              Digest.parse(digest.getHash() + "/" + digest.getSizeBytes()),
                              Presence.MISSING));
              return all;
            });
  }

  private static Mono<FindMissingBlobsResponse> missing(
      ManagedChannel channel, List<Digest> digests) {
    FindMissingBlobsRequest.Builder request = FindMissingBlobsRequest.newBuilder();
    digests.forEach(
        digest ->
            request.addBlobDigests(
                RemoteExecution.Digest.newBuilder()
                    .setHash(digest.hash())
                    .setSizeBytes(digest.sizeBytes())));
    return StockClient.<FindMissingBlobsResponse>call(
            observer ->
                ContentAddressableStorageGrpc.newStub(channel)
                    .findMissingBlobs(request.build(), observer))
        .single();
  }

  @Override
  public Mono<Void> write(Digest digest, byte[] content, Duration time) {
    ByteString data = UnsafeByteOperations.unsafeWrap(content);
    return StockClient.<WriteResponse>call(
            observer -> {
              StreamObserver<WriteRequest> requests =
                  ByteStreamGrpc.newStub(home(digest)).write(observer);
              requests.onNext(
                  WriteRequest.newBuilder()
                      .setResourceName("uploads/" + UUID.randomUUID() + "/blobs/" + digest)
                      .setData(data)
                      .setFinishWrite(true)
                      .build());
              requests.onCompleted();
            })
        .single()
        .doOnNext(
            response -> {
              if (response.getCommittedSize() != content.length) {
                throw new IllegalStateException("committed " + response.getCommittedSize());
              }
            })
        .then();
  }

  /** A call by callbacks as a Flux; cancelling it ends the call. */
  private static <T> Flux<T> call(Consumer<StreamObserver<T>> start) {
    return Flux.create(
        sink -> {
          Context.CancellableContext context = Context.current().withCancellation();
          sink.onDispose(() -> context.cancel(null));
          context.run(() -> start.accept(observer(sink)));
        });
  }

  private static <T> StreamObserver<T> observer(FluxSink<T> sink) {
    return new StreamObserver<>() {
      @Override
      public void onNext(T value) {
        sink.next(value);
      }

      @Override
      public void onError(Throwable error) {
        sink.error(error);
      }

      @Override
      public void onCompleted() {
        sink.complete();
      }
    };
  }

  @Override
  public void close() {
    channels.forEach(ManagedChannel::shutdownNow);
  }
}
