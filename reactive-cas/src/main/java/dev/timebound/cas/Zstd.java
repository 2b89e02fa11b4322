package dev.timebound.cas;

import com.github.luben.zstd.EndDirective;
import com.github.luben.zstd.ZstdCompressCtx;
import com.github.luben.zstd.ZstdDecompressCtx;
import com.github.luben.zstd.ZstdException;
import com.github.luben.zstd.util.Native;
import com.google.protobuf.UnsafeByteOperations;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.cas.wire.ByteStreams.WriteRequest;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;

/**
 * Byte streams that travel compressed (CAS-32), in memory that does not grow with the blob: a piece
 * at a time, whatever it becomes. The one class that touches zstd's library, which is optional.
 */
final class Zstd {
  /** Bytes of an uncompressed piece, and of a compressed one at most. */
  private static final int PIECE = 64 << 10;

  private Zstd() {}

  /** Whether the library is there. The first call loads it, which reads files. */
  static boolean isAvailable() {
    try {
      Native.load();
      return true;
    } catch (LinkageError absent) {
      return false;
    }
  }

  // --- up

  /** The same upload, compressed; offsets count what travels. */
  static Flux<WriteRequest> compress(Flux<WriteRequest> plain) {
    return Flux.using(
        Packer::new, packer -> plain.concatMapIterable(packer::pack, 1), Packer::close);
  }

  private static final class Packer {
    private final ZstdCompressCtx context = new ZstdCompressCtx();
    private boolean closed;
    private long offset;

    /** Of the first request, which nothing may come of yet. */
    private String name = "";

    /** A cancel may close it in the midst. */
    synchronized List<WriteRequest> pack(WriteRequest plain) {
      List<WriteRequest> packed = new ArrayList<>();
      if (closed) {
        return packed;
      }
      if (!plain.getResourceName().isEmpty()) {
        name = plain.getResourceName();
      }
      boolean last = plain.getFinishWrite();
      EndDirective how = last ? EndDirective.END : EndDirective.CONTINUE;
      ByteBuffer from = ByteBuffer.wrap(plain.getData().toByteArray());
      boolean done = false;
      while (from.hasRemaining() || (last && !done)) {
        ByteBuffer to = ByteBuffer.allocate(PIECE);
        done = context.compressByteBufferStream(to, from, how);
        to.flip();
        boolean end = last && done && !from.hasRemaining();
        if (to.hasRemaining() || end) {
          packed.add(request(to, end));
        }
      }
      return packed;
    }

    private WriteRequest request(ByteBuffer data, boolean last) {
      WriteRequest request =
          WriteRequest.newBuilder()
              .setResourceName(name)
              .setWriteOffset(offset)
              .setFinishWrite(last)
              .setData(UnsafeByteOperations.unsafeWrap(data))
              .build();
      offset += request.getData().size();
      name = "";
      return request;
    }

    synchronized void close() {
      if (!closed) {
        closed = true;
        context.close();
      }
    }
  }

  // --- down

  /**
   * What was compressed, in pieces that are made as they are asked for: a stream that becomes far
   * more than the digest says is ended by its reader long before.
   */
  static Flux<ReadResponse> decompress(Flux<ReadResponse> compressed, Digest digest) {
    return Flux.using(
        () -> new Unpacker(digest),
        unpacker -> compressed.concatMapIterable(unpacker::unpack, 1),
        Unpacker::close);
  }

  private static final class Unpacker {
    private final Digest digest;
    private final ZstdDecompressCtx context = new ZstdDecompressCtx();
    private boolean closed;

    Unpacker(Digest digest) {
      this.digest = digest;
    }

    /** One piece at least: an empty one is a sign of life. */
    Iterable<ReadResponse> unpack(ReadResponse compressed) {
      ByteBuffer from = ByteBuffer.wrap(compressed.getData().toByteArray());
      return () ->
          new Iterator<>() {
            private boolean first = true;
            private boolean more = from.hasRemaining();

            @Override
            public boolean hasNext() {
              return first || more;
            }

            @Override
            public ReadResponse next() {
              if (!hasNext()) {
                throw new NoSuchElementException();
              }
              first = false;
              ByteBuffer piece = more ? piece(from) : null;
              // a full one may have left something behind
              more = piece != null && (from.hasRemaining() || piece.limit() == PIECE);
              return piece == null
                  ? ReadResponse.getDefaultInstance()
                  : ReadResponse.newBuilder()
                      .setData(UnsafeByteOperations.unsafeWrap(piece))
                      .build();
            }
          };
    }

    /** Null where it was closed meanwhile. */
    private synchronized @Nullable ByteBuffer piece(ByteBuffer from) {
      if (closed) {
        return null;
      }
      ByteBuffer to = ByteBuffer.allocate(PIECE);
      try {
        context.decompressByteBufferStream(to, from);
      } catch (ZstdException corrupt) {
        throw DataLossException.corrupt(digest, corrupt);
      }
      return to.flip();
    }

    synchronized void close() {
      if (!closed) {
        closed = true;
        context.close();
      }
    }
  }
}
