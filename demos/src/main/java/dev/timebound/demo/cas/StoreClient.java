package dev.timebound.demo.cas;

import dev.timebound.cas.Digest;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A way of using the ring, as the demo's load does. */
interface StoreClient extends AutoCloseable {
  /** What a check says of a key. */
  enum Presence {
    PRESENT,
    MISSING,
    UNKNOWN
  }

  /** The blob's bytes, within that time where the client knows of time. */
  Flux<ByteBuffer> read(Digest digest, Duration time);

  /** Which of these are there; every key has an answer. */
  Mono<Map<Digest, Presence>> check(Set<Digest> digests, Duration time);

  Mono<Void> write(Digest digest, byte[] content, Duration time);

  /** When, by {@link System#nanoTime}, that shard was last taken back; 0 where it never was. */
  default long takenBackAt(int shard) {
    return 0;
  }

  /** Whether it tells {@link #takenBackAt}. */
  default boolean tellsHealth() {
    return false;
  }

  /** How its shards stand, for the line of each second; may be empty. */
  default String state() {
    return "";
  }

  @Override
  void close();
}
