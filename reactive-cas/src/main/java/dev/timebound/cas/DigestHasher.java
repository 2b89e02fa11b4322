package dev.timebound.cas;

import java.nio.ByteBuffer;

/**
 * Makes a digest of bytes that come piece by piece, in memory that does not grow with them. For one
 * blob and one thread at a time.
 */
public final class DigestHasher {
  private final DigestFunction function;
  private final DigestFunction.Hash hash;
  private long size;
  private boolean done;

  private DigestHasher(DigestFunction function) {
    this.function = function;
    this.hash = function.start();
  }

  /**
   * A hasher that has seen nothing yet.
   *
   * @throws IllegalStateException where the function's library is not on the class path
   */
  public static DigestHasher of(DigestFunction function) {
    return new DigestHasher(function);
  }

  /**
   * Takes what remains in the buffer, whose position stays.
   *
   * @throws IllegalStateException after {@link #digest}
   */
  public DigestHasher update(ByteBuffer bytes) {
    requireOpen();
    size += bytes.remaining();
    hash.update(bytes.duplicate());
    return this;
  }

  /** How many bytes it has seen. */
  public long size() {
    return size;
  }

  /**
   * The digest of all the bytes. It ends the hasher.
   *
   * @throws IllegalStateException when it was called before
   */
  public Digest digest() {
    requireOpen();
    done = true;
    return Digest.of(hash.finish(), size, function);
  }

  private void requireOpen() {
    if (done) {
      throw new IllegalStateException("this hasher has given its digest (expected: a new hasher)");
    }
  }
}
