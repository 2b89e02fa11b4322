package dev.timebound.cas.kit;

import com.github.luben.zstd.ZstdInputStream;
import com.github.luben.zstd.ZstdOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;

/** The one class of the kit that touches zstd's library, which is optional. */
final class Zstd {
  private Zstd() {}

  static byte[] compress(byte[] bytes) {
    ByteArrayOutputStream compressed = new ByteArrayOutputStream();
    try (ZstdOutputStream out = new ZstdOutputStream(compressed)) {
      out.write(bytes);
    } catch (IOException e) {
      throw new IllegalStateException("in memory", e);
    }
    return compressed.toByteArray();
  }

  /**
   * @param max bytes beyond which it is not read on: the result has one more then
   * @throws IOException where it is no zstd
   */
  static byte[] decompress(byte[] compressed, long max) throws IOException {
    try (ZstdInputStream in = new ZstdInputStream(new ByteArrayInputStream(compressed))) {
      return in.readNBytes((int) Math.min(Integer.MAX_VALUE - 8, max + 1));
    }
  }
}
