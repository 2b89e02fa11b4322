package dev.timebound.cas;

import java.nio.ByteBuffer;
import org.bouncycastle.crypto.digests.Blake3Digest;

/** The only class that touches Bouncy Castle: it is optional. */
final class Blake3Hash implements DigestFunction.Hash {
  private static final int COPY_AT_ONCE = 8 * 1024;

  private final Blake3Digest blake3 = new Blake3Digest(Digest.HASH_BYTES * Byte.SIZE);

  @Override
  public void update(ByteBuffer bytes) {
    if (bytes.hasArray()) {
      blake3.update(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
      bytes.position(bytes.limit());
      return;
    }
    byte[] copy = new byte[Math.min(COPY_AT_ONCE, bytes.remaining())];
    while (bytes.hasRemaining()) {
      int n = Math.min(copy.length, bytes.remaining());
      bytes.get(copy, 0, n);
      blake3.update(copy, 0, n);
    }
  }

  @Override
  public byte[] finish() {
    byte[] hash = new byte[Digest.HASH_BYTES];
    blake3.doFinal(hash, 0);
    return hash;
  }
}
