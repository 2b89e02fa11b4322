package dev.timebound.cas;

import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;
import reactor.util.context.ContextView;

/** Which byte streams travel compressed: where both sides can (CAS-32). */
final class Compression {
  /** Bytes of a blob below which nothing is won. */
  private static final int SMALLEST = 4 << 10;

  /** How long a server that does not serve what it says it can is not asked for it. */
  private static final long REFUSED_FOR = Duration.ofMinutes(10).toNanos();

  private final boolean on;
  private final ShardCapabilities capabilities;
  private final LongSupplier clock;
  private final Map<Shard, Long> refusedAt = new ConcurrentHashMap<>();

  /** Those that have served a compressed stream. */
  private final Set<Shard> proven = ConcurrentHashMap.newKeySet();

  /**
   * @param on it is wanted, and the library is there
   * @param clock in nanoseconds
   */
  Compression(boolean on, ShardCapabilities capabilities, LongSupplier clock) {
    this.on = on;
    this.capabilities = capabilities;
    this.clock = clock;
  }

  /**
   * Whether an upload travels compressed.
   *
   * @param server what the shard's server says of itself
   */
  boolean ofWrite(Shard shard, CasCapabilities server, Digest digest) {
    return on && server.zstd() && digest.sizeBytes() >= SMALLEST && !hasRefused(shard);
  }

  /** Whether a read travels compressed; not before the server has said that it can. */
  boolean ofRead(Shard shard, Digest digest) {
    CasCapabilities known = capabilities.known(shard);
    return known != null && ofWrite(shard, known, digest);
  }

  /** The shard has served a read: by the next one like it, it may be known what it can. */
  void served(Shard shard, Digest digest, ContextView context) {
    if (on && digest.sizeBytes() >= SMALLEST) {
      capabilities.learn(shard, context);
    }
  }

  /** The shard has given a compressed stream: it knows what those are called. */
  void proved(Shard shard) {
    if (!proven.contains(shard)) {
      proven.add(shard);
    }
  }

  /**
   * Whether a compressed read may have been refused for what it is called, as {@link
   * #isRefusal(Throwable)}. Of a shard that has served one NOT_FOUND is of the blob.
   */
  boolean isRefusal(Shard shard, Throwable failure) {
    return isRefusal(failure)
        && !(proven.contains(shard)
            && ((StatusRuntimeException) failure).getStatus().getCode() == Status.Code.NOT_FOUND);
  }

  /**
   * Whether a compressed stream may have been refused for what it is called: then the blob is asked
   * for, or sent, once more, uncompressed. A server that does not know such names may as well say
   * that there is no such blob, which must not be told of a blob that it has. (CAS-30b)
   */
  static boolean isRefusal(Throwable failure) {
    return failure instanceof StatusRuntimeException e
        && !(failure instanceof DataLossException)
        && switch (e.getStatus().getCode()) {
          case UNIMPLEMENTED, INVALID_ARGUMENT, NOT_FOUND -> true;
          default -> false;
        };
  }

  /** The shard refused a compressed stream, and served the same one uncompressed. */
  void refused(Shard shard) {
    proven.remove(shard);
    refusedAt.put(shard, clock.getAsLong());
  }

  private boolean hasRefused(Shard shard) {
    Long at = refusedAt.get(shard);
    return at != null && clock.getAsLong() - at < REFUSED_FOR;
  }
}
