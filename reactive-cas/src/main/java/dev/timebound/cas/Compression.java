package dev.timebound.cas;

import reactor.util.context.ContextView;

/** Which byte streams travel compressed: where both sides can (CAS-32). */
final class Compression {
  /** Bytes of a blob below which nothing is won. */
  private static final int SMALLEST = 4 << 10;

  private final boolean on;
  private final ShardCapabilities capabilities;

  /**
   * @param on it is wanted, and the library is there
   */
  Compression(boolean on, ShardCapabilities capabilities) {
    this.on = on;
    this.capabilities = capabilities;
  }

  /** Whether an upload travels compressed. */
  boolean ofWrite(CasCapabilities server, Digest digest) {
    return on && server.zstd() && digest.sizeBytes() >= SMALLEST;
  }

  /** Whether a read travels compressed; not before the server has said that it can. */
  boolean ofRead(Shard shard, Digest digest) {
    CasCapabilities known = capabilities.known(shard);
    return known != null && ofWrite(known, digest);
  }

  /** The shard has served a read: by the next one like it, it may be known what it can. */
  void served(Shard shard, Digest digest, ContextView context) {
    if (on && digest.sizeBytes() >= SMALLEST) {
      capabilities.learn(shard, context);
    }
  }
}
