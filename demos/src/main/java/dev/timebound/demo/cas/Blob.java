package dev.timebound.demo.cas;

import dev.timebound.cas.Digest;

/**
 * A blob of the demo, made anew from its seed whenever it is needed.
 *
 * @param home the shard its key maps to
 * @param mirrored whether it is on the next shard of the ring too
 */
record Blob(Digest digest, long seed, int home, boolean mirrored) {
  byte[] content() {
    return Blobs.content(seed, (int) digest.sizeBytes());
  }

  long size() {
    return digest.sizeBytes();
  }
}
