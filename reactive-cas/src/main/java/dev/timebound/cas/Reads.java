package dev.timebound.cas;

import dev.timebound.grpc.DeliveryExecutor;
import java.nio.ByteBuffer;
import java.util.concurrent.RejectedExecutionException;
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

  Reads(
      RingShards shards,
      ShardCalls calls,
      DeliveryExecutor delivery,
      CasMeters meters,
      CasObservations observations) {
    this.shards = shards;
    this.calls = calls;
    this.delivery = delivery;
    this.meters = meters;
    this.observations = observations;
  }

  Flux<ByteBuffer> read(Digest digest) {
    return digest.isEmpty()
        ? Flux.empty()
        : Flux.deferContextual(context -> new BlobRead(this, digest, context).chunks())
            .name(OPERATION);
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

  RingSettings settings() {
    return calls.settings();
  }

  CasMeters meters() {
    return meters;
  }

  CasObservations observations() {
    return observations;
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
