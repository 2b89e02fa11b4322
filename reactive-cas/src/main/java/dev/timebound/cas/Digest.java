package dev.timebound.cas;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HexFormat;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * The name of a blob: the hash of its bytes, their number, and the function that made the hash. A
 * value, immutable and thread-safe.
 *
 * <p>A hash is 32 bytes; another length, a malformed or upper-case hex string and a negative size
 * are refused with an {@link IllegalArgumentException} that names the value and what was expected
 * (CAS-10).
 */
public final class Digest {
  static final int HASH_BYTES = 32;

  private static final VarHandle LONG_LE =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final HexFormat HEX = HexFormat.of();

  // The hash as four little-endian words: the ring's key is made from these with no array in
  // between.
  private final long word0;
  private final long word1;
  private final long word2;
  private final long word3;
  private final long sizeBytes;
  private final DigestFunction function;

  private Digest(byte[] hash, long sizeBytes, DigestFunction function) {
    if (hash.length != HASH_BYTES) {
      throw new IllegalArgumentException(
          "hash: " + hash.length + " bytes (expected: " + HASH_BYTES + " bytes)");
    }
    if (sizeBytes < 0) {
      throw new IllegalArgumentException("size: " + sizeBytes + " (expected: >= 0)");
    }
    this.word0 = (long) LONG_LE.get(hash, 0);
    this.word1 = (long) LONG_LE.get(hash, 8);
    this.word2 = (long) LONG_LE.get(hash, 16);
    this.word3 = (long) LONG_LE.get(hash, 24);
    this.sizeBytes = sizeBytes;
    this.function = function;
  }

  /** The SHA-256 digest of these bytes. */
  public static Digest of(byte[] blob) {
    return of(blob, DigestFunction.SHA256);
  }

  /**
   * The digest of these bytes.
   *
   * @throws IllegalStateException where the function's library is not on the class path
   */
  public static Digest of(byte[] blob, DigestFunction function) {
    return of(ByteBuffer.wrap(blob), function);
  }

  /**
   * The digest of what remains in the buffer, whose position stays.
   *
   * @throws IllegalStateException where the function's library is not on the class path
   */
  public static Digest of(ByteBuffer blob, DigestFunction function) {
    return DigestHasher.of(function).update(blob).digest();
  }

  /**
   * A digest that is known already.
   *
   * @param hash 64 lower-case hex digits
   * @param sizeBytes 0 or more
   */
  public static Digest of(String hash, long sizeBytes, DigestFunction function) {
    return new Digest(bytesOf(hash), sizeBytes, function);
  }

  /**
   * A digest that is known already.
   *
   * @param hash 32 bytes, copied
   * @param sizeBytes 0 or more
   */
  public static Digest of(byte[] hash, long sizeBytes, DigestFunction function) {
    return new Digest(hash, sizeBytes, function);
  }

  /** A SHA-256 digest written as {@code hash/size}: 64 lower-case hex digits, a decimal number. */
  public static Digest parse(String digest) {
    return parse(digest, DigestFunction.SHA256);
  }

  /** A digest written as {@code hash/size}: 64 lower-case hex digits, a decimal number. */
  public static Digest parse(String digest, DigestFunction function) {
    int slash = digest.indexOf('/');
    if (slash < 0) {
      throw new IllegalArgumentException("digest: " + digest + " (expected: hash/size)");
    }
    return of(digest.substring(0, slash), sizeOf(digest.substring(slash + 1)), function);
  }

  private static byte[] bytesOf(String hash) {
    if (hash.length() == 2 * HASH_BYTES && hash.equals(hash.toLowerCase(Locale.ROOT))) {
      try {
        return HEX.parseHex(hash);
      } catch (IllegalArgumentException notHex) {
        throw badHash(hash, notHex);
      }
    }
    throw badHash(hash, null);
  }

  private static IllegalArgumentException badHash(String hash, @Nullable Exception cause) {
    return new IllegalArgumentException(
        "hash: " + hash + " (expected: " + 2 * HASH_BYTES + " lower-case hex digits)", cause);
  }

  private static long sizeOf(String size) {
    boolean digits = !size.isEmpty() && size.chars().allMatch(c -> c >= '0' && c <= '9');
    try {
      if (digits) {
        return Long.parseLong(size);
      }
    } catch (NumberFormatException tooLong) {
      throw new IllegalArgumentException(
          "size: " + size + " (expected: <= " + Long.MAX_VALUE + ")", tooLong);
    }
    throw new IllegalArgumentException("size: " + size + " (expected: a decimal number >= 0)");
  }

  /** The empty blob's digest. It is known to everyone, so that nobody is asked for it (CAS-30). */
  public static Digest empty(DigestFunction function) {
    return of(function.hashOfNothing(), 0, function);
  }

  /** The hash in 64 lower-case hex digits. */
  public String hash() {
    return HEX.formatHex(hashBytes());
  }

  /** The hash, 32 bytes, the caller's own copy. */
  public byte[] hashBytes() {
    byte[] hash = new byte[HASH_BYTES];
    LONG_LE.set(hash, 0, word0);
    LONG_LE.set(hash, 8, word1);
    LONG_LE.set(hash, 16, word2);
    LONG_LE.set(hash, 24, word3);
    return hash;
  }

  /** The number of the blob's bytes, uncompressed; 0 or more. */
  public long sizeBytes() {
    return sizeBytes;
  }

  /** What made the hash. */
  public DigestFunction function() {
    return function;
  }

  /** Whether this is the empty blob's digest: size 0 and the hash of nothing. */
  public boolean isEmpty() {
    return sizeBytes == 0 && equals(empty(function));
  }

  /** The ring's key, unsigned: all 32-bit words of hash and size XORed (CAS-10). */
  int ringKey() {
    long folded = word0 ^ word1 ^ word2 ^ word3 ^ sizeBytes;
    return (int) (folded ^ (folded >>> 32));
  }

  /** The hash's first eight bytes, big-endian. */
  long hashHead() {
    return Long.reverseBytes(word0);
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof Digest that
        && word0 == that.word0
        && word1 == that.word1
        && word2 == that.word2
        && word3 == that.word3
        && sizeBytes == that.sizeBytes
        && function == that.function;
  }

  @Override
  public int hashCode() {
    return Long.hashCode(word0);
  }

  /** {@code hash/size}, which {@link #parse} reads. */
  @Override
  public String toString() {
    return hash() + "/" + sizeBytes;
  }
}
