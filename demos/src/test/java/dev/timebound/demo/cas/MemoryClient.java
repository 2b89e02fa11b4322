package dev.timebound.demo.cas;

import dev.timebound.cas.Digest;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** All that a ring has, in memory; faults by overriding. */
class MemoryClient implements StoreClient {
  private final Map<Digest, Blob> blobs = new HashMap<>();

  MemoryClient(Blobs all) {
    all.mirrored().forEach(blob -> blobs.put(blob.digest(), blob));
    all.unmirrored().forEach(blob -> blobs.put(blob.digest(), blob));
  }

  final Blob blob(Digest digest) {
    Blob blob = blobs.get(digest);
    if (blob == null) {
      throw new IllegalArgumentException("digest: " + digest + " (expected: one of the demo's)");
    }
    return blob;
  }

  @Override
  public Flux<ByteBuffer> read(Digest digest, Duration time) {
    return Flux.defer(() -> Flux.just(ByteBuffer.wrap(blob(digest).content())));
  }

  @Override
  public Mono<Map<Digest, Presence>> check(Set<Digest> digests, Duration time) {
    Map<Digest, Presence> all = new HashMap<>();
    digests.forEach(
        digest -> all.put(digest, blobs.containsKey(digest) ? Presence.PRESENT : Presence.MISSING));
    return Mono.just(all);
  }

  @Override
  public Mono<Void> write(Digest digest, byte[] content, Duration time) {
    return Digest.of(content).equals(digest)
        ? Mono.empty()
        : Mono.error(new IllegalStateException("wrong digest"));
  }

  @Override
  public void close() {}
}
