package dev.timebound.cas.kit;

import dev.timebound.cas.Digest;
import io.grpc.Status;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** What a scripted store has: blobs, and what came of uploads that have not ended. */
final class BlobStore {
  private final Map<Digest, byte[]> blobs = new ConcurrentHashMap<>();
  private final Map<String, Upload> uploads = new ConcurrentHashMap<>();

  /** Null where it has it not. The empty blob is everywhere. */
  byte @Nullable [] get(Digest digest) {
    return digest.isEmpty() ? new byte[0] : blobs.get(digest);
  }

  void put(Digest digest, byte[] content) {
    blobs.put(digest, content);
  }

  void remove(Digest digest) {
    blobs.remove(digest);
  }

  void clear() {
    blobs.clear();
    uploads.clear();
  }

  Set<Digest> digests() {
    return Set.copyOf(blobs.keySet());
  }

  /** Takes a blob as sent; OK, or why it is none. */
  Status take(Digest digest, byte[] content, boolean compressed) {
    byte[] blob = content;
    if (compressed) {
      try {
        blob = Zstd.decompress(content, digest.sizeBytes());
      } catch (IOException notZstd) {
        return Status.INVALID_ARGUMENT.withDescription("not zstd: " + notZstd.getMessage());
      }
    }
    Digest sent = Digest.of(blob, digest.function());
    if (!sent.equals(digest)) {
      return Status.INVALID_ARGUMENT.withDescription("sent " + sent + " as " + digest);
    }
    put(digest, blob);
    return Status.OK;
  }

  /** The upload of that resource name, begun where there is none. */
  Upload upload(String resourceName) {
    return uploads.computeIfAbsent(resourceName, any -> new Upload());
  }

  /** Null where none was begun, or it is over. */
  @Nullable Upload uploadUnderWay(String resourceName) {
    return uploads.get(resourceName);
  }

  void over(String resourceName) {
    uploads.remove(resourceName);
  }

  /** Bytes of one upload, as they travelled. */
  static final class Upload {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    synchronized long size() {
      return bytes.size();
    }

    /** Goes back to that many bytes; false where there are less. */
    synchronized boolean goBackTo(long size) {
      if (size > bytes.size()) {
        return false;
      }
      if (size == bytes.size()) {
        return true;
      }
      byte[] kept = Arrays.copyOf(bytes.toByteArray(), (int) size);
      bytes.reset();
      bytes.writeBytes(kept);
      return true;
    }

    synchronized void add(byte[] more) {
      bytes.writeBytes(more);
    }

    synchronized byte[] content() {
      return bytes.toByteArray();
    }
  }
}
