package dev.timebound.bench;

import com.google.protobuf.ByteString;
import dev.timebound.cas.CasConfig;
import dev.timebound.cas.CasRing;
import dev.timebound.cas.Digest;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.stub.StreamObserver;
import java.util.List;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The contestants of reading many small blobs; each verifies the digest of every one. */
enum CasSmallMode {
  STREAMS("a stream a blob, by stubs", CasSmallMode::streams),
  RING("a stream a blob, by CasRing.read", CasSmallMode::ring),
  READ_MANY("CasRing.readMany", CasSmallMode::readMany);

  /** Streams at a time. */
  private static final int AT_A_TIME = 64;

  private final String title;
  private final Connect connect;

  CasSmallMode(String title, Connect connect) {
    this.title = title;
    this.connect = connect;
  }

  String title() {
    return title;
  }

  Reader connect(int port) {
    return connect.to(port);
  }

  /** Reads all of them once; how many were right. */
  @FunctionalInterface
  interface Reader {
    Mono<Long> read(List<Digest> digests);
  }

  private interface Connect {
    Reader to(int port);
  }

  private static CasRing open(int port) {
    return CasRing.builder(new CasConfig(List.of(CasConfig.Shard.of("fast", "localhost:" + port))))
        .build();
  }

  private static Reader streams(int port) {
    ManagedChannel channel =
        ManagedChannelBuilder.forAddress("localhost", port).usePlaintext().build();
    return digests ->
        Flux.fromIterable(digests)
            .flatMap(
                digest -> stream(channel, digest).filter(content -> isRight(content, digest)),
                AT_A_TIME)
            .count();
  }

  private static boolean isRight(ByteString content, Digest digest) {
    return Digest.of(content.asReadOnlyByteBuffer(), digest.function()).equals(digest);
  }

  private static Mono<ByteString> stream(ManagedChannel channel, Digest digest) {
    return Mono.create(
        sink ->
            ByteStreamGrpc.newStub(channel)
                .read(
                    ReadRequest.newBuilder().setResourceName("blobs/" + digest).build(),
                    new StreamObserver<>() {
                      private ByteString content = ByteString.EMPTY;

                      @Override
                      public void onNext(ReadResponse message) {
                        content = content.concat(message.getData());
                      }

                      @Override
                      public void onError(Throwable error) {
                        sink.error(error);
                      }

                      @Override
                      public void onCompleted() {
                        sink.success(content);
                      }
                    }));
  }

  private static Reader ring(int port) {
    CasRing ring = open(port);
    return digests -> Flux.fromIterable(digests).flatMap(ring::readAll, AT_A_TIME).count();
  }

  private static Reader readMany(int port) {
    CasRing ring = open(port);
    return digests -> ring.readMany(digests).filter(result -> result.isOk()).count();
  }
}
