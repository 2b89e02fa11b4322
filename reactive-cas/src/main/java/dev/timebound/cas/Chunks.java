package dev.timebound.cas;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * Cuts a blob into the pieces that travel, checks the whole of it on the way (CAS-30), and keeps
 * the last ones, so that an upload that broke can go on without its source. Buffers are neither
 * copied nor moved: a piece is made of views of them. Not thread-safe.
 */
final class Chunks {
  /** A piece and its place in the blob. */
  record Chunk(long offset, ByteString data) {
    static Chunk empty(long offset) {
      return new Chunk(offset, ByteString.EMPTY);
    }

    long end() {
      return offset + data.size();
    }
  }

  private final DigestVerifier verifier;
  private final int size;
  private final int kept;

  /** Bytes at the blob's beginning that the server has already: checked, and not sent. */
  private long toSkip;

  private ByteString pending = ByteString.EMPTY;

  /** Where the next piece begins. */
  private long end;

  private final ArrayDeque<Chunk> retained = new ArrayDeque<>();
  private long retainedBytes;

  /**
   * @param size bytes of a piece, but for the last one
   * @param kept bytes of the last pieces to keep, at least
   * @param skip bytes that are not to be sent
   */
  Chunks(Digest digest, int size, int kept, long skip) {
    this.verifier = DigestVerifier.of(digest);
    this.size = size;
    this.kept = kept;
    this.toSkip = skip;
    this.end = skip;
  }

  /**
   * Takes what remains in the buffer, whose position stays.
   *
   * @throws DataLossException where there is more than the digest says
   */
  void add(ByteBuffer buffer) {
    verifier.update(buffer);
    ByteBuffer view = buffer.slice();
    int skipped = (int) Math.min(toSkip, view.remaining());
    toSkip -= skipped;
    view.position(skipped);
    if (view.hasRemaining()) {
      pending = pending.concat(UnsafeByteOperations.unsafeWrap(view));
    }
  }

  /**
   * The next piece that can go out by now; null where there is none. One that may be the last is
   * kept back until it is known whether all is right.
   */
  @Nullable Chunk next() {
    boolean whole = pending.size() > size || (pending.size() == size && verifier.remaining() > 0);
    return whole ? cut(size) : null;
  }

  /**
   * The last piece, empty where the server has all bytes: the source has ended.
   *
   * @throws DataLossException where the bytes are not the digest's
   */
  Chunk last() {
    verifier.finish();
    return cut(pending.size());
  }

  private Chunk cut(int bytes) {
    Chunk chunk = new Chunk(end, pending.substring(0, bytes));
    pending = pending.substring(bytes);
    end = chunk.end();
    retained.add(chunk);
    retainedBytes += bytes;
    while (retained.size() > 1 && retainedBytes - retained.element().data().size() >= kept) {
      retainedBytes -= retained.remove().data().size();
    }
    return chunk;
  }

  /** Where the next piece will begin: all before it has been given. */
  long end() {
    return end;
  }

  /** Whether what follows that offset can still be given. */
  boolean has(long offset) {
    Chunk oldest = retained.peek();
    return offset <= end && offset >= (oldest == null ? end : oldest.offset());
  }

  /** A piece given before, or what of it follows the offset, which is kept and below the end. */
  Chunk again(long offset) {
    for (Chunk chunk : retained) {
      if (offset < chunk.end()) {
        int from = (int) (offset - chunk.offset());
        return from == 0 ? chunk : new Chunk(offset, chunk.data().substring(from));
      }
    }
    throw new IllegalArgumentException("offset: " + offset + " (expected: < " + end + ")");
  }
}
