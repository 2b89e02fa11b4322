package dev.timebound.cas;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * How a blob's name is made from its bytes (CAS-32). Both functions give 32 bytes, as the ring's
 * mapping wants (CAS-10).
 */
public enum DigestFunction {
  /** The default, built into Java. */
  SHA256("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),

  /**
   * BLAKE3 with 256 bits. Digests of this function can be made and sent without further ado;
   * hashing with it needs {@code org.bouncycastle:bcprov-jdk18on} on the class path.
   */
  BLAKE3("af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");

  private final String hashOfNothing;

  DigestFunction(String hashOfNothing) {
    this.hashOfNothing = hashOfNothing;
  }

  /** The hash of the empty blob, in lower-case hex. */
  String hashOfNothing() {
    return hashOfNothing;
  }

  /**
   * The element that names this function in a resource name, with its slash; empty for SHA-256,
   * which servers tell from the hash's length.
   */
  String pathElement() {
    return this == SHA256 ? "" : "blake3/";
  }

  /**
   * @throws IllegalStateException where the function's library is not on the class path; the
   *     message says which
   */
  Hash start() {
    if (this == SHA256) {
      return sha256();
    }
    try {
      return new Blake3Hash();
    } catch (NoClassDefFoundError absent) {
      throw new IllegalStateException(
          "digestFunction: BLAKE3 (expected: org.bouncycastle:bcprov-jdk18on on the class path)",
          absent);
    }
  }

  private static Hash sha256() {
    MessageDigest sha;
    try {
      sha = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException absent) {
      throw new IllegalStateException("every Java has SHA-256", absent);
    }
    return new Hash() {
      @Override
      public void update(ByteBuffer bytes) {
        sha.update(bytes);
      }

      @Override
      public byte[] finish() {
        return sha.digest();
      }
    };
  }

  /** A hash under way; takes every byte that remains in the buffers. */
  interface Hash {
    void update(ByteBuffer bytes);

    byte[] finish();
  }
}
