package dev.timebound.cas;

import java.util.UUID;

/** What blobs are called in the byte stream service. An empty instance leaves no leading slash. */
final class ResourceNames {
  private ResourceNames() {}

  static String read(String instance, Digest digest) {
    return prefix(instance) + "blobs/" + name(digest);
  }

  static String readZstd(String instance, Digest digest) {
    return prefix(instance) + "compressed-blobs/zstd/" + name(digest);
  }

  /**
   * @param upload a new one for each upload, the same when that upload goes on
   */
  static String write(String instance, UUID upload, Digest digest) {
    return uploads(instance, upload) + "blobs/" + name(digest);
  }

  /**
   * @param upload a new one for each upload
   */
  static String writeZstd(String instance, UUID upload, Digest digest) {
    return uploads(instance, upload) + "compressed-blobs/zstd/" + name(digest);
  }

  private static String uploads(String instance, UUID upload) {
    return prefix(instance) + "uploads/" + upload + "/";
  }

  private static String prefix(String instance) {
    return instance.isEmpty() ? "" : instance + "/";
  }

  private static String name(Digest digest) {
    return digest.function().pathElement() + digest;
  }
}
