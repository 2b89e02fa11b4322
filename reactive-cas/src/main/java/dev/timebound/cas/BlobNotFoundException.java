package dev.timebound.cas;

import io.grpc.Status;
import io.grpc.StatusRuntimeException;

/**
 * The blob's home shard says that it has no such blob (CAS-30b). Its status is {@code NOT_FOUND}. A
 * shard that does not answer is never told as this.
 */
public final class BlobNotFoundException extends StatusRuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient Digest digest;

  BlobNotFoundException(Digest digest, String shard, Throwable answer) {
    super(
        Status.NOT_FOUND
            .withDescription("digest: " + digest + " (not found on " + shard + ", its home)")
            .withCause(answer));
    this.digest = digest;
  }

  /** The digest that was asked for. */
  public Digest digest() {
    return digest;
  }
}
