package dev.timebound.cas.kit;

import dev.timebound.cas.Digest;
import dev.timebound.cas.DigestFunction;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a resource name of the byte stream service says.
 *
 * @param upload which upload; empty for a read
 */
record CasResource(String instance, String upload, boolean compressed, Digest digest) {

  /** Null where it cannot be read. */
  static @Nullable CasResource parse(String name) {
    List<String> all = Arrays.asList(name.split("/", -1));
    int at = 0;
    while (at < all.size() && !isReserved(all.get(at))) {
      at++;
    }
    String instance = String.join("/", all.subList(0, at));
    String upload = "";
    if (at < all.size() && all.get(at).equals("uploads")) {
      if (at + 1 >= all.size()) {
        return null;
      }
      upload = all.get(at + 1);
      at += 2;
    }
    boolean compressed = at < all.size() && all.get(at).equals("compressed-blobs");
    if (compressed) {
      if (at + 1 >= all.size() || !all.get(at + 1).equals("zstd")) {
        return null;
      }
      at++;
    } else if (at >= all.size() || !all.get(at).equals("blobs")) {
      return null;
    }
    at++;
    DigestFunction function = DigestFunction.SHA256;
    if (at < all.size() && all.get(at).equals("blake3")) {
      function = DigestFunction.BLAKE3;
      at++;
    }
    if (at + 1 >= all.size()) {
      return null;
    }
    try {
      Digest digest = Digest.parse(all.get(at) + "/" + all.get(at + 1), function);
      return new CasResource(instance, upload, compressed, digest);
    } catch (IllegalArgumentException malformed) {
      return null;
    }
  }

  private static boolean isReserved(String element) {
    return element.equals("blobs")
        || element.equals("compressed-blobs")
        || element.equals("uploads");
  }
}
