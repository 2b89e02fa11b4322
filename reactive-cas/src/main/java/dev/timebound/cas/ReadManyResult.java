package dev.timebound.cas;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * One blob of {@link CasRing#readMany}.
 *
 * @param bytes read-only, the whole blob, checked against its digest; null where it could not be
 *     read
 * @param failure why not, as of {@link CasRing#read}; null where it was read
 */
public record ReadManyResult(
    Digest digest, @Nullable ByteBuffer bytes, @Nullable Throwable failure) {
  static ReadManyResult of(Digest digest, ByteBuffer bytes) {
    return new ReadManyResult(digest, bytes, null);
  }

  static ReadManyResult failed(Digest digest, Throwable failure) {
    return new ReadManyResult(digest, null, failure);
  }

  /** Whether it was read. */
  public boolean isOk() {
    return failure == null;
  }
}
