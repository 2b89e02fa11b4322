package dev.timebound.cas;

import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.DeliveryExecutor;
import dev.timebound.grpc.GrpcCalls;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Reads of single blobs, and what all of them share. */
final class Reads {
  static final String OPERATION = "cas.read";
  static final String MANY = "cas.read-many";

  /** What an array may hold on any JVM. */
  private static final int LARGEST_ARRAY = Integer.MAX_VALUE - 8;

  private final RingShards shards;
  private final ShardCalls calls;
  private final DeliveryExecutor delivery;
  private final CasMeters meters;
  private final CasObservations observations;
  private final Compression compression;

  Reads(
      RingShards shards,
      ShardCalls calls,
      DeliveryExecutor delivery,
      CasMeters meters,
      CasObservations observations,
      Compression compression) {
    this.shards = shards;
    this.calls = calls;
    this.delivery = delivery;
    this.meters = meters;
    this.observations = observations;
    this.compression = compression;
  }

  Flux<ByteBuffer> read(Digest digest) {
    return digest.isEmpty()
        ? Flux.empty()
        : new StrictDemand<>(
            Flux.deferContextual(context -> new BlobRead(this, digest, context).chunks())
                .contextWrite(Quiet::of)
                .name(OPERATION));
  }

  Mono<byte[]> readAll(Digest digest) {
    long size = digest.sizeBytes();
    if (size > LARGEST_ARRAY) {
      return Mono.error(
          () ->
              new IllegalArgumentException(
                  "size: " + size + " (expected: <= " + LARGEST_ARRAY + " for readAll)"));
    }
    return read(digest).collect(() -> new Whole((int) size), Whole::add).map(Whole::bytes);
  }

  Flux<ReadManyResult> readMany(Collection<Digest> digests, ShardCapabilities capabilities) {
    List<Digest> own = List.copyOf(digests);
    return Flux.deferContextual(
            context ->
                Flux.from(
                        Deadlines.<ReadManyResult>of(Deadlines.current(context), MANY)
                            .apply(new ReadMany(this, capabilities, context).run(own)))
                    .tap(() -> new ManyEnd<>(MANY, observations, context)))
        .contextWrite(Quiet::of)
        .name(MANY);
  }

  /** A blob's bytes, put together. */
  private static final class Whole {
    private final int size;
    private byte @Nullable [] bytes;
    private int filled;

    Whole(int size) {
      this.size = size;
    }

    /** Never more than the size: the read sees to that. */
    void add(ByteBuffer piece) {
      byte[] to = bytes;
      if (to == null) {
        to = new byte[size];
        bytes = to;
      }
      int length = piece.remaining();
      piece.get(to, filled, length);
      filled += length;
    }

    byte[] bytes() {
      byte[] all = bytes;
      return all == null ? new byte[0] : all;
    }
  }

  // --- for the reads

  RingShards shards() {
    return shards;
  }

  ShardCalls calls() {
    return calls;
  }

  Compression compression() {
    return compression;
  }

  RingSettings settings() {
    return calls.settings();
  }

  CasMeters meters() {
    return meters;
  }

  CasObservations observations() {
    return observations;
  }

  /**
   * The blob's pieces from that byte on, as the shard's server has them. Where it refuses to give
   * them compressed, though it said that it can, they are asked for once more. (CAS-32)
   */
  Flux<ReadResponse> stream(ShardCalls.Opened with, Shard shard, Digest digest, long offset) {
    Flux<ReadResponse> plain = stream(with, shard, digest, offset, false);
    if (!compression.ofRead(shard, digest)) {
      return plain;
    }
    AtomicBoolean begun = new AtomicBoolean();
    AtomicBoolean refused = new AtomicBoolean();
    Flux<ReadResponse> packed =
        stream(with, shard, digest, offset, true).doOnNext(message -> begun.set(true));
    return Zstd.decompress(packed, digest)
        .doOnNext(
            piece -> {
              if (!piece.getData().isEmpty()) {
                compression.proved(shard);
              }
            })
        .onErrorResume(
            e -> !begun.get() && compression.isRefusal(shard, e),
            e ->
                plain.doOnNext(
                    served -> {
                      if (refused.compareAndSet(false, true)) {
                        compression.refused(shard);
                      }
                    }));
  }

  private static Flux<ReadResponse> stream(
      ShardCalls.Opened with, Shard shard, Digest digest, long offset, boolean compressed) {
    ReadRequest request =
        ReadRequest.newBuilder()
            .setResourceName(
                compressed
                    ? ResourceNames.readZstd(shard.instanceName(), digest)
                    : ResourceNames.read(shard.instanceName(), digest))
            .setReadOffset(offset) // of the blob, compressed or not
            // From the start: to the end, since some servers take no limit. (CAS-30a)
            .setReadLimit(offset == 0 || compressed ? 0 : digest.sizeBytes() - offset)
            .build();
    return GrpcCalls.serverStreaming(with.channel(), PieceMarshaller.READ, with.options(), request);
  }

  /** Runs a task where pieces are delivered; here where that is shut down. */
  void deliver(Runnable task) {
    try {
      delivery.executor().execute(task);
    } catch (RejectedExecutionException shutDown) {
      task.run();
    }
  }
}
