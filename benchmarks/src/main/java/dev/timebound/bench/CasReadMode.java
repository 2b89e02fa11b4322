package dev.timebound.bench;

import com.google.protobuf.ByteString;
import dev.timebound.cas.CasConfig;
import dev.timebound.cas.CasRing;
import dev.timebound.cas.Digest;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.io.OutputStream;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The contestants of reading large blobs; each verifies the SHA-256 of what it reads. */
enum CasReadMode {
  RAW("raw ClientCall", CasReadMode::raw),
  OBSERVER("StreamObserver, as Bazel's client", CasReadMode::observer),
  TIMEBOUND("Timebound", CasReadMode::timebound);

  /** As many as the ring asks for ahead of its reader, so that a message is never waited for. */
  private static final int AHEAD = 4;

  private final String title;
  private final Connect connect;

  CasReadMode(String title, Connect connect) {
    this.title = title;
    this.connect = connect;
  }

  String title() {
    return title;
  }

  Reader connect(int port, String instance) {
    return connect.to(port, instance);
  }

  /** Reads the blob once; completes with its bytes, exceptionally where they are not right. */
  @FunctionalInterface
  interface Reader {
    CompletableFuture<Long> read(Digest digest);
  }

  private interface Connect {
    Reader to(int port, String instance);
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException absent) {
      throw new IllegalStateException("every Java has SHA-256", absent);
    }
  }

  private static void end(
      CompletableFuture<Long> done, Digest digest, long bytes, MessageDigest sha) {
    if (bytes == digest.sizeBytes() && Arrays.equals(sha.digest(), digest.hashBytes())) {
      done.complete(bytes);
    } else {
      done.completeExceptionally(new IllegalStateException("wrong bytes, " + bytes + " of them"));
    }
  }

  private static ReadRequest request(String instance, Digest digest) {
    return ReadRequest.newBuilder().setResourceName(instance + "/blobs/" + digest).build();
  }

  /** The floor: a plain ClientCall with the digest in it, and nothing else. */
  private static Reader raw(int port, String instance) {
    ManagedChannel channel =
        NettyChannelBuilder.forAddress("localhost", port)
            .usePlaintext()
            .maxInboundMessageSize(16 << 20)
            .build();
    return digest -> {
      CompletableFuture<Long> done = new CompletableFuture<>();
      MessageDigest sha = sha256();
      ClientCall<ReadRequest, ReadResponse> call =
          channel.newCall(ByteStreamGrpc.getReadMethod(), CallOptions.DEFAULT);
      call.start(
          new ClientCall.Listener<ReadResponse>() {
            private long bytes;

            @Override
            public void onMessage(ReadResponse message) {
              ByteString data = message.getData();
              sha.update(data.asReadOnlyByteBuffer());
              bytes += data.size();
              call.request(1);
            }

            @Override
            public void onClose(Status status, Metadata trailers) {
              if (status.isOk()) {
                end(done, digest, bytes, sha);
              } else {
                done.completeExceptionally(status.asRuntimeException());
              }
            }
          },
          new Metadata());
      call.request(AHEAD);
      call.sendMessage(request(instance, digest));
      call.halfClose();
      return done;
    };
  }

  /** As Bazel's gRPC cache client reads: an observer that writes each message to a digest's out. */
  private static Reader observer(int port, String instance) {
    ManagedChannel channel =
        ManagedChannelBuilder.forAddress("localhost", port).usePlaintext().build();
    return digest -> {
      CompletableFuture<Long> done = new CompletableFuture<>();
      MessageDigest sha = sha256();
      OutputStream out = new DigestOutputStream(OutputStream.nullOutputStream(), sha);
      ByteStreamGrpc.newStub(channel)
          .read(
              request(instance, digest),
              new StreamObserver<>() {
                private long bytes;

                @Override
                public void onNext(ReadResponse message) {
                  try {
                    message.getData().writeTo(out);
                  } catch (IOException e) {
                    throw new IllegalStateException("in memory", e);
                  }
                  bytes += message.getData().size();
                }

                @Override
                public void onError(Throwable error) {
                  done.completeExceptionally(error);
                }

                @Override
                public void onCompleted() {
                  end(done, digest, bytes, sha);
                }
              });
      return done;
    };
  }

  /** The ring checks the digest by itself; here the bytes are counted. */
  private static Reader timebound(int port, String instance) {
    CasRing ring =
        CasRing.builder(
                new CasConfig(
                    List.of(
                        new CasConfig.Shard(
                            "fast",
                            1,
                            List.of(new CasConfig.Endpoint("localhost", port)),
                            instance))))
            .build();
    return digest ->
        ring.read(digest).reduce(0L, (bytes, chunk) -> bytes + chunk.remaining()).toFuture();
  }
}
