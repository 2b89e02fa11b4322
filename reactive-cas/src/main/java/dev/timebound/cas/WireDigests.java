package dev.timebound.cas;

import dev.timebound.cas.wire.RemoteExecution;

/** Digests as the protocol's messages have them. */
final class WireDigests {
  /** More than one digest adds to a message: 64 digits, a size, tags and lengths. */
  static final int MOST_BYTES = 80;

  private WireDigests() {}

  static RemoteExecution.Digest of(Digest digest) {
    return RemoteExecution.Digest.newBuilder()
        .setHash(digest.hash())
        .setSizeBytes(digest.sizeBytes())
        .build();
  }

  static RemoteExecution.DigestFunction.Value function(DigestFunction function) {
    return switch (function) {
      case SHA256 -> RemoteExecution.DigestFunction.Value.SHA256;
      case BLAKE3 -> RemoteExecution.DigestFunction.Value.BLAKE3;
    };
  }
}
