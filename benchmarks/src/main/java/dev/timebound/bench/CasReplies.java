package dev.timebound.bench;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import dev.timebound.cas.Digest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsResponse;
import dev.timebound.cas.wire.RemoteExecution.CacheCapabilities;
import dev.timebound.cas.wire.RemoteExecution.ServerCapabilities;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Every reply of {@link CasFastServer}, made before the first request: one large blob, as messages
 * of 1 MiB (instance {@link #MIB}) and of 64 KiB (instance {@link #KIB_64}), and many blobs of 1
 * KiB.
 */
final class CasReplies {
  /** Instance name of the store that sends 1 MiB a message. */
  static final String MIB = "mib";

  /** Instance name of the store that sends 64 KiB a message. */
  static final String KIB_64 = "kib64";

  static final int LARGE_BYTES = 64 << 20;
  static final int SMALL_BYTES = 1 << 10;
  static final int SMALL_COUNT = 10_000;

  private static final int BATCH_LIMIT = 1 << 20;

  private final List<byte[]> byMib;
  private final List<byte[]> byKib64;
  private final Map<String, byte[]> small = new HashMap<>();

  CasReplies() {
    byte[] large = large();
    byMib = messages(large, 1 << 20);
    byKib64 = messages(large, 64 << 10);
    for (int i = 0; i < SMALL_COUNT; i++) {
      byte[] content = small(i);
      small.put(Digest.of(content).toString(), content);
    }
  }

  /** The large blob, always the same. */
  static byte[] large() {
    byte[] content = new byte[LARGE_BYTES];
    new Random(1).nextBytes(content);
    return content;
  }

  /** A small blob by its number. */
  static byte[] small(int number) {
    byte[] content = new byte[SMALL_BYTES];
    new Random(number).nextBytes(content);
    return content;
  }

  /** The digests of all small blobs. */
  static List<Digest> smallDigests() {
    List<Digest> digests = new ArrayList<>();
    for (int i = 0; i < SMALL_COUNT; i++) {
      digests.add(Digest.of(small(i)));
    }
    return digests;
  }

  private static List<byte[]> messages(byte[] content, int size) {
    List<byte[]> messages = new ArrayList<>();
    for (int at = 0; at < content.length; at += size) {
      messages.add(message(content, at, Math.min(size, content.length - at)));
    }
    return messages;
  }

  private static byte[] message(byte[] content, int from, int length) {
    return ReadResponse.newBuilder()
        .setData(ByteString.copyFrom(content, from, length))
        .build()
        .toByteArray();
  }

  /** A read: {@code [instance/]blobs/hash/size}. */
  List<byte[]> read(String resource) {
    int at = resource.indexOf("blobs/") + "blobs/".length();
    byte[] content = small.get(resource.substring(at));
    if (content != null) {
      return List.of(message(content, 0, content.length));
    }
    return resource.startsWith(KIB_64) ? byKib64 : byMib;
  }

  List<byte[]> batch(BatchReadBlobsRequest request) {
    BatchReadBlobsResponse.Builder answer = BatchReadBlobsResponse.newBuilder();
    for (RemoteExecution.Digest digest : request.getDigestsList()) {
      byte[] content = small.get(digest.getHash() + "/" + digest.getSizeBytes());
      if (content == null) {
        throw new IllegalArgumentException("digest: " + digest + " (expected: a small blob's)");
      }
      answer.addResponses(
          BatchReadBlobsResponse.Response.newBuilder()
              .setDigest(digest)
              .setData(UnsafeByteOperations.unsafeWrap(content)));
    }
    return List.of(answer.build().toByteArray());
  }

  static List<byte[]> capabilities() {
    return List.of(
        ServerCapabilities.newBuilder()
            .setCacheCapabilities(
                CacheCapabilities.newBuilder()
                    .addDigestFunctions(RemoteExecution.DigestFunction.Value.SHA256)
                    .setMaxBatchTotalSizeBytes(BATCH_LIMIT))
            .build()
            .toByteArray());
  }
}
