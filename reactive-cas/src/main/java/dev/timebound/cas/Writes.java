package dev.timebound.cas;

import dev.timebound.deadline.Deadlines;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Writes of single blobs, and what all of them share. */
final class Writes {
  static final String OPERATION = "cas.write";
  static final String MANY = "cas.write-many";

  /** Bytes sent last that an upload holds, so that it can send them again without its source. */
  static final int KEPT = 1 << 20;

  private final RingShards shards;
  private final ShardCalls calls;
  private final ShardCapabilities capabilities;
  private final Compression compression;
  private final CasMeters meters;
  private final CasObservations observations;

  /** No two rings' are alike. Made once: the JVM's secure randomness may read a file. */
  private final UUID firstUpload = UUID.randomUUID();

  private final AtomicLong uploads = new AtomicLong();

  Writes(
      RingShards shards,
      ShardCalls calls,
      ShardCapabilities capabilities,
      Compression compression,
      CasMeters meters,
      CasObservations observations) {
    this.shards = shards;
    this.calls = calls;
    this.capabilities = capabilities;
    this.compression = compression;
    this.meters = meters;
    this.observations = observations;
  }

  Mono<WriteResult> write(Digest digest, Publisher<? extends ByteBuffer> content) {
    return digest.isEmpty()
        ? nothing(digest, content)
        : Mono.deferContextual(context -> new BlobWrite(this, digest, content, context).run())
            .contextWrite(Quiet::of)
            .name(OPERATION);
  }

  Mono<WriteResult> write(Digest digest, byte[] content) {
    return write(digest, Mono.fromSupplier(() -> ByteBuffer.wrap(content)));
  }

  Flux<WriteManyResult> writeMany(Map<Digest, byte[]> blobs) {
    Map<Digest, byte[]> own = Map.copyOf(blobs);
    return Flux.deferContextual(
            context ->
                Flux.from(
                        Deadlines.<WriteManyResult>of(Deadlines.current(context), MANY)
                            .apply(new WriteMany(this, context).run(own)))
                    .tap(() -> new ManyEnd<>(MANY, observations, context)))
        .contextWrite(Quiet::of)
        .name(MANY);
  }

  /** The empty blob is everywhere; what is given as one is checked all the same. */
  private static Mono<WriteResult> nothing(Digest digest, Publisher<? extends ByteBuffer> content) {
    return Mono.defer(
        () -> {
          DigestVerifier verifier = DigestVerifier.of(digest);
          return Flux.from(content)
              .doOnNext(verifier::update)
              .then(Mono.fromSupplier(() -> new WriteResult(digest, true)));
        });
  }

  // --- for the writes

  /** A name that no upload had before. */
  UUID newUpload() {
    return new UUID(
        firstUpload.getMostSignificantBits(),
        firstUpload.getLeastSignificantBits() ^ uploads.getAndIncrement());
  }

  RingShards shards() {
    return shards;
  }

  ShardCalls calls() {
    return calls;
  }

  ShardCapabilities capabilities() {
    return capabilities;
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
}
