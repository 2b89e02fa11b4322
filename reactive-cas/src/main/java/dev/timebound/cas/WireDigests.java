package dev.timebound.cas;

import dev.timebound.cas.wire.RemoteExecution;
import io.grpc.Status;

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

  /**
   * A digest that a shard has sent.
   *
   * @throws io.grpc.StatusRuntimeException INTERNAL where it is none
   */
  static Digest from(Shard shard, RemoteExecution.Digest digest, DigestFunction function) {
    try {
      return Digest.of(digest.getHash(), digest.getSizeBytes(), function);
    } catch (IllegalArgumentException malformed) {
      throw Status.INTERNAL
          .withDescription(shard + ": its answer has what is no digest: " + malformed.getMessage())
          .withCause(malformed)
          .asRuntimeException();
    }
  }
}
