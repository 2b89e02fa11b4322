package dev.timebound.cas;

import java.nio.ByteBuffer;

/**
 * Checks bytes that come piece by piece against the digest they should have (CAS-30), in memory
 * that does not grow with them. For one blob and one thread at a time.
 *
 * <p>Content longer than the digest's size is refused with the piece that goes beyond it, before
 * that piece is hashed (CAS-30a).
 */
public final class DigestVerifier {
  private final Digest expected;
  private final DigestHasher hasher;

  private DigestVerifier(Digest expected) {
    this.expected = expected;
    this.hasher = DigestHasher.of(expected.function());
  }

  /**
   * A verifier that has seen nothing yet.
   *
   * @throws IllegalStateException where the function's library is not on the class path
   */
  public static DigestVerifier of(Digest expected) {
    return new DigestVerifier(expected);
  }

  /**
   * Takes what remains in the buffer, whose position stays.
   *
   * @throws DataLossException when there are more bytes than the digest says
   * @throws IllegalStateException after {@link #finish}
   */
  public DigestVerifier update(ByteBuffer bytes) {
    if (bytes.remaining() > remaining()) {
      throw DataLossException.tooLong(expected);
    }
    hasher.update(bytes);
    return this;
  }

  /** How many bytes are still to come; 0 or more. */
  public long remaining() {
    return expected.sizeBytes() - hasher.size();
  }

  /**
   * Says that this was all. It ends the verifier.
   *
   * @throws DataLossException when bytes are missing or the hash is another
   * @throws IllegalStateException when it was called before
   */
  public void finish() {
    Digest found = hasher.digest();
    if (!found.equals(expected)) {
      throw DataLossException.mismatch(expected, found);
    }
  }
}
